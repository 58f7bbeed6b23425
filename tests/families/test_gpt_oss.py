from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset, read_config
from modelbones.ranks import Axis, Ranks, widest_shape
from modelbones.skeleton import Mixer
from tests.families.reading_back import names, parameters, pattern, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("gpt-oss-120b")
SMALL = {**CONFIG, "num_hidden_layers": 24, "layer_types": ["sliding_attention", "full_attention"] * 12}


def test_the_120b_keeps_36_864_bytes_a_token_and_windows_of_128_beside() -> None:
    budget = skeleton(CONFIG).budget()
    assert budget.fixed() == 0
    assert budget.per_token() == 18 * 2 * 8 * 64 * 2 == 36_864
    assert budget.for_sequence(131_072) == 36_864 * (131_072 + 128) == 4_836_556_800
    assert [(term.name, term.num_layers) for term in budget.terms] == [("window_kv", 18), ("kv", 18)]


def test_32_sequences_of_8_192_on_the_20b_hold_at_least_6_gib() -> None:
    """Field case B11, alvarobartt/hf-mem pull 70: the lower bound; engines with unified pages reserve 12 GiB."""
    tokens = 12 * 8_192 + 12 * 128
    assert 32 * skeleton(SMALL).budget().for_sequence(8_192) == 32 * 2_048 * tokens == int(6.09375 * 2**30)


def test_the_bf16_form_has_116_829_156_672_parameters_in_615_tensors() -> None:
    assert parameters(CONFIG) == 116_829_156_672
    assert len(names(CONFIG)) == 615


def test_experts_are_stacked_with_inputs_before_outputs_and_have_biases() -> None:
    assert shapes(CONFIG, "model.layers.{layer}.mlp.") == {
        "router.weight": (128, 2880),
        "router.bias": (128,),
        "experts.gate_up_proj": (128, 2880, 5760),
        "experts.gate_up_proj_bias": (128, 5760),
        "experts.down_proj": (128, 2880, 2880),
        "experts.down_proj_bias": (128, 2880),
    }


def test_a_rank_s_share_of_an_expert_is_whole_pairs_of_gate_and_up() -> None:
    stacked = pattern(CONFIG, "experts.gate_up_proj")
    ranks = Ranks.of({Axis.EXPERT_FFN: 7})
    assert widest_shape(stacked.shape, stacked.split, ranks) == (128, 2880, 2 * 412)
    down = pattern(CONFIG, "experts.down_proj")
    assert widest_shape(down.shape, down.split, ranks) == (128, 412, 2880)


def test_every_projection_has_a_bias_and_every_head_a_sink() -> None:
    attention = shapes(CONFIG, "model.layers.{layer}.self_attn.")
    assert attention["sinks"] == (64,)
    assert {name for name in attention if name.endswith(".bias")} == {f"{x}_proj.bias" for x in "qkvo"}


def test_without_words_even_layers_have_the_window() -> None:
    bare = edited(CONFIG, {"layer_types": GONE})
    assert skeleton(bare).layers == skeleton(CONFIG).layers
    assert [layer.index for layer in skeleton(bare).layers if layer.mixer is Mixer.WINDOW] == list(range(0, 36, 2))
    assumed = {item.path: item.meaning for item in read_config(bare).declared.assumed}
    assert assumed == {"layer_types": "windows on even layers, full attention on odd ones"}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"sliding_window": None}, "sliding_window: found missing; expected a positive integer"),
        (
            {"layer_types": ["chunked_attention"] + ["full_attention"] * 35},
            'layer_types[0]: found "chunked_attention"; expected one of full_attention, sliding_attention',
        ),
        ({"num_local_experts": None}, "num_local_experts: found missing; expected a positive integer"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
