from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset, read_config
from modelbones.parts.part import StateKind
from modelbones.ranks import Axis, Ranks
from modelbones.skeleton import Mixer, Mlp
from modelbones.wiring import PRE_NORM
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("llama-3.1-8b")
SOURCE = "transformers 5.23 configuration_llama.py"


def test_a_token_costs_131_072_bytes() -> None:
    budget = skeleton(CONFIG).budget()
    # 32 layers x (key + value) x 8 heads x 128 x 2 bytes.
    assert budget.per_token() == 32 * 2 * 8 * 128 * 2 == 131_072
    assert budget.fixed() == 0
    assert budget.for_sequence(131_072) == 131_072 * 131_072
    assert [(term.name, term.num_layers) for term in budget.terms] == [("kv", 32)]


def test_the_release_has_8_030_261_248_parameters_in_291_tensors() -> None:
    assert parameters(CONFIG) == 8_030_261_248
    assert len(names(CONFIG)) == 291


def test_every_layer_is_attention_and_one_mlp_behind_norms() -> None:
    bones = skeleton(CONFIG)
    assert {(layer.mixer, layer.mlp, layer.steps) for layer in bones.layers} == {(Mixer.ATTENTION, Mlp.DENSE, PRE_NORM)}
    assert set(bones.state_plan().values()) == {StateKind.KV}
    assert bones.kv_cache_layers() == tuple(range(32))
    assert bones.kda_state_layers() == ()
    assert bones.mtp is None


def test_a_layer_has_nine_tensors() -> None:
    assert shapes(CONFIG, "model.layers.{layer}.") == {
        "self_attn.q_proj.weight": (4096, 4096),
        "self_attn.k_proj.weight": (1024, 4096),
        "self_attn.v_proj.weight": (1024, 4096),
        "self_attn.o_proj.weight": (4096, 4096),
        "input_layernorm.weight": (4096,),
        "post_attention_layernorm.weight": (4096,),
        "mlp.gate_proj.weight": (14336, 4096),
        "mlp.up_proj.weight": (14336, 4096),
        "mlp.down_proj.weight": (4096, 14336),
    }


@pytest.mark.parametrize(("ranks", "heads"), [(1, 8), (2, 4), (3, 3), (8, 1), (16, 1), (64, 1)])
def test_ranks_share_whole_heads_and_repeat_them_when_there_are_too_few(ranks: int, heads: int) -> None:
    budget = skeleton(CONFIG).budget()
    (term,) = budget.terms
    assert term.nbytes(tokens=1, ranks=Ranks.of({Axis.HEADS: ranks})) == 32 * 2 * heads * 128 * 2


def test_biases_are_what_the_config_says() -> None:
    plain = names(CONFIG)
    biased = names(edited(CONFIG, {"attention_bias": True, "mlp_bias": True}))
    stem = "model.layers.0."
    assert {name.removeprefix(stem) for name in biased - plain if name.startswith(stem)} == {
        *(f"self_attn.{x}_proj.bias" for x in "qkvo"),
        *(f"mlp.{x}_proj.bias" for x in ("gate", "up", "down")),
    }


def test_a_tied_head_may_be_stored_and_need_not() -> None:
    tied = skeleton(edited(CONFIG, {"tie_word_embeddings": True}))
    assert [p.name for p in tied.patterns if not p.required] == ["lm_head.weight"]
    assert "lm_head.weight" not in tied.structural_tensor_set()


def test_absent_keys_with_one_meaning_are_listed_with_it() -> None:
    edits = dict.fromkeys(("num_key_value_heads", "attention_bias", "mlp_bias", "tie_word_embeddings", "dtype"), GONE)
    config = read_config(edited(CONFIG, edits))
    assumed = {item.path: (item.meaning, item.source) for item in config.declared.assumed}
    assert set(assumed) == {*edits, "head_dim"}
    assert assumed["head_dim"] == ("128: hidden_size / num_attention_heads", SOURCE)
    assert assumed["num_key_value_heads"] == ("32: one key-value head for each query head", SOURCE)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"hidden_size": GONE}, ["hidden_size: found missing; expected a positive integer"]),
        ({"vocab_size": 0}, ["vocab_size: found 0; expected a positive integer"]),
        ({"num_hidden_layers": True}, ["num_hidden_layers: found true; expected an integer from 1 to 100000"]),
        ({"intermediate_size": 14336.0}, ["intermediate_size: found 14336.0; expected a positive integer"]),
        ({"num_key_value_heads": 5}, ["num_key_value_heads: found 5; expected a divisor of num_attention_heads, 32"]),
        (
            {"hidden_size": 4097},
            ["hidden_size: found 4097; expected a multiple of num_attention_heads, 32, as no head_dim is named"],
        ),
        ({"head_dim": 0}, ["head_dim: found 0; expected a positive integer"]),
        ({"attention_bias": 1}, ["attention_bias: found 1; expected true or false"]),
        (
            {"dtype": "int7"},
            [
                'dtype: found "int7"; expected one of bfloat16, torch.bfloat16, float16, torch.float16, '
                "float32, torch.float32"
            ],
        ),
        (
            {"vocab_size": GONE, "num_attention_heads": -1},
            [
                "vocab_size: found missing; expected a positive integer",
                "num_attention_heads: found -1; expected a positive integer",
            ],
        ),
    ],
)
def test_what_is_wrong_is_refused_all_at_once(edits: dict[str, Any], expected: list[str]) -> None:
    assert faults(edited(CONFIG, edits)) == expected
