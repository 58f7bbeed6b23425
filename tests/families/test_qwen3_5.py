from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset
from modelbones.skeleton import Mixer
from modelbones.tensors import Group
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("qwen3.5-27b")
TEXT = {**CONFIG["text_config"], "model_type": "qwen3_5_text"}


def _text(**sizes: Any) -> dict[str, Any]:
    return {**TEXT, **sizes}


def test_64_layers_of_which_16_attend_cost_65_536_bytes_a_token() -> None:
    budget = skeleton(CONFIG).budget()
    assert budget.per_token() == 16 * 2 * 4 * 256 * 2 == 65_536
    # 48 layers of 48 value heads x 128 x 128 fp32, and of 3 rows x (2 x 2,048 + 6,144) channels bf16.
    assert budget.fixed() == 48 * (48 * 128 * 128 * 4 + 3 * 10_240 * 2) == 153_944_064


def test_at_262_144_tokens_the_attending_layers_hold_16_gib_not_65() -> None:
    """Field case B12, tmac1973/llama-toolchest pull 166: recurrent layers and the MTP block were counted too."""
    kv = next(term for term in skeleton(CONFIG).budget().terms if term.name == "kv")
    assert (kv.num_layers, kv.nbytes(tokens=262_144)) == (16, 16 * 2**30)


def test_a_48_layer_model_of_one_kib_elements_has_12_attending_layers() -> None:
    """The same case's second model: 48 blocks, every 4th attending, 1,024 KV elements a layer."""
    small = _text(num_hidden_layers=48, num_key_value_heads=2, num_attention_heads=16, mtp_num_hidden_layers=0)
    (kv,) = [term for term in skeleton(small).budget().terms if term.name == "kv"]
    assert (kv.num_layers, kv.nbytes(tokens=1)) == (12, 12 * 1_024 * 2)


def test_inputs_are_four_matrices() -> None:
    assert shapes(CONFIG, "model.language_model.layers.{layer}.linear_attn.") == {
        "in_proj_qkv.weight": (10240, 5120),
        "in_proj_z.weight": (6144, 5120),
        "in_proj_b.weight": (48, 5120),
        "in_proj_a.weight": (48, 5120),
        "conv1d.weight": (10240, 1, 4),
        "dt_bias": (48,),
        "A_log": (48,),
        "norm.weight": (128,),
        "out_proj.weight": (5120, 6144),
    }


def test_the_trunk_of_the_9b_has_427_tensors() -> None:
    """Field case A14, ggml-org/llama.cpp issue 26916: 24 layers x 14 + 8 x 11 + 3, and no MTP block."""
    nine = _text(
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=32,
        num_attention_heads=16,
        linear_num_value_heads=32,
    )
    assert len(names(nine)) == 24 * 14 + 8 * 11 + 3 == 427
    assert len(names(nine, Group.MTP)) == 11 + 4


def test_a_four_layer_hybrid_asks_each_layer_for_its_own_mixer_only() -> None:
    """Field case A20, arcee-ai/mergekit pull 696: all 27 linear-attention tensors were missing in silence."""
    words = ["linear_attention"] * 3 + ["full_attention"]
    small = edited(_text(num_hidden_layers=4, layer_types=words), {"full_attention_interval": GONE})
    linear = {name for name in names(small) if ".linear_attn." in name}
    assert len(linear) == 27
    assert {name.split(".")[2] for name in linear} == {"0", "1", "2"}
    assert {name.split(".")[2] for name in names(small) if ".self_attn." in name} == {"3"}
    whole = names(small) | names(small, Group.MTP)
    assert skeleton(small).account(whole).is_complete()
    assert skeleton(small).account(whole - linear).missing == tuple(sorted(linear))


def test_text_only_files_leave_the_wrapper_s_prefix_and_its_tower_out() -> None:
    wrapped, text = skeleton(CONFIG), skeleton(TEXT)
    assert (wrapped.prefix, text.prefix) == ("model.language_model.", "model.")
    assert (wrapped.open_prefixes, text.open_prefixes) == ((("model.visual.", Group.VISION),), ())
    assert wrapped.layers == text.layers
    assert parameters(CONFIG) == parameters(TEXT) == 26_895_998_464


def test_the_module_is_one_full_attention_layer_with_a_dense_mlp() -> None:
    bones = skeleton(CONFIG)
    assert bones.mtp is not None
    assert (bones.mtp.index, bones.mtp.mixer, bones.mtp.stem) == (64, Mixer.ATTENTION, "mtp.")
    assert len(names(CONFIG, Group.MTP)) == 15
    assert bones.optional_groups == frozenset()
    assert skeleton(edited(CONFIG, {"text_config.mtp_num_hidden_layers": GONE})).optional_groups == {Group.MTP}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"text_config": GONE}, "text_config: found missing; expected an object with the sizes of the text model"),
        ({"text_config": 5}, "text_config: found 5; expected an object"),
        ({"text_config.model_type": "llama"}, 'text_config.model_type: found "llama"; expected "qwen3_5_text"'),
        ({"text_config.intermediate_size": 0}, "text_config.intermediate_size: found 0; expected a positive integer"),
        (
            {"tie_word_embeddings": True},
            "tie_word_embeddings: found true; expected what text_config.tie_word_embeddings says",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
