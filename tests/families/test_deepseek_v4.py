from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.families.registry import build, preset, read_config
from modelbones.skeleton import Final, Mixer, Step
from modelbones.tensors import Group
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("deepseek-v4-flash")
RATIOS = CONFIG["compress_ratios"]
WORDS = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}


def test_two_window_layers_then_the_two_kinds_of_compression_in_turn() -> None:
    mixers = [layer.mixer for layer in build(read_config(CONFIG)).layers]
    assert mixers[:2] == [Mixer.WINDOW] * 2
    assert mixers[2:] == [*([Mixer.CSA, Mixer.HCA] * 20), Mixer.CSA]


def test_state_falls_from_135_tokens_to_136_when_pools_of_four_complete() -> None:
    budget = build(read_config(CONFIG)).budget()
    windows = 43 * 128 * 512 * 2
    # A CSA layer at 135: 33 pools and 3 tokens left, two series wide, rows and gates; the same for its indexer.
    overlap = 4 * 512 * (2 + 4) + 4 * 128 * (2 + 4)
    sparse = 33 * (512 + 128) * 2 + 3 * 2 * 2 * (512 + 128) * 2 + overlap
    # An HCA layer: 1 pool and 7 tokens left, one series wide.
    heavy = 1 * 512 * 2 + 7 * 2 * 512 * 2
    assert budget.for_sequence(135) == windows + 21 * sparse + 20 * heavy == 7_475_456
    sparse, heavy = 34 * (512 + 128) * 2 + overlap, 1 * 512 * 2 + 8 * 2 * 512 * 2
    assert budget.for_sequence(136) == windows + 21 * sparse + 20 * heavy == 7_220_736
    # The most on the way is before the first pool of 128 completes, with 127 tokens left over.
    assert budget.peak(136) == budget.for_sequence(127) > budget.for_sequence(135)


@given(st.integers(0, 700))
def test_the_peak_is_the_most_on_the_way(tokens: int) -> None:
    budget = build(read_config(CONFIG)).budget()
    assert budget.peak(tokens) == max(budget.for_sequence(moment) for moment in range(tokens + 1))


def test_the_last_ratio_is_the_mtp_module_s() -> None:
    skeleton = build(read_config(CONFIG))
    assert len(RATIOS) == 44
    assert skeleton.mtp is not None
    assert skeleton.mtp.mixer is Mixer.WINDOW
    names = {name for p in skeleton.patterns if p.group is Group.MTP for name in p.names()}
    # 1,575 in the FP8 and FP4 release: each of 256 x 3 expert matrices and 10 others has a scale.
    assert len(names) == 1_575 - 256 * 3 - 10 == 797
    assert {"mtp.0.e_proj.weight", "mtp.0.hc_head_fn", "mtp.0.ffn.gate.bias", "mtp.0.norm.weight"} <= names
    assert all(name.startswith("mtp.0.") for name in names)


def test_the_first_three_layers_look_their_experts_up() -> None:
    patterns = {(p.name, p.group): p for p in build(read_config(CONFIG)).patterns}
    table = patterns["layers.{layer}.ffn.gate.tid2eid", Group.TRUNK]
    assert (table.shape, table.layers) == ((129_280, 6), (0, 1, 2))
    assert patterns["layers.{layer}.ffn.gate.bias", Group.TRUNK].layers == tuple(range(3, 43))


def test_streams_are_collapsed_by_a_learned_head() -> None:
    skeleton = build(read_config(CONFIG))
    assert [step.kind for step in skeleton.final_plan()] == [Final.HYPER_HEAD, Final.NORM, Final.LM_HEAD]
    steps = skeleton.layers[0].steps
    assert [step.kind for step in steps[:5]] == [
        Step.SAVE_RESIDUAL,
        Step.HC_PRE,
        Step.NORM,
        Step.MIXER,
        Step.HC_POST,
    ]
    assert [step.weight for step in steps if step.weight] == ["attn_norm.weight", "ffn_norm.weight"]


def test_words_for_ratios_say_the_same() -> None:
    worded = edited(
        CONFIG,
        {
            "compress_ratios": GONE,
            "layer_types": [WORDS[ratio] for ratio in RATIOS[:43]],
            "num_hash_layers": GONE,
            "mlp_layer_types": ["hash_moe"] * 3 + ["moe"] * 40,
            "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128},
        },
    )
    assert build(read_config(worded)).patterns == build(read_config(CONFIG)).patterns


def test_a_drafter_of_another_make_is_an_open_module() -> None:
    skeleton = build(read_config({**CONFIG, "dspark_block_size": 5, "compress_ratios": [*RATIOS, 0, 0]}))
    assert skeleton.mtp is None
    assert skeleton.open_prefixes == (("mtp.", Group.MTP),)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"compress_ratios": GONE},
            "compress_ratios: found missing; expected a list of at least 43 ratios, or layer_types",
        ),
        (
            {"compress_ratios": RATIOS[:42]},
            "compress_ratios: found a list of 42; expected a list of at least 43 ratios",
        ),
        ({"compress_ratios": [8, *RATIOS[1:]]}, "compress_ratios[0]: found 8; expected one of 0, 4, 128"),
        ({"compress_ratios": [*RATIOS, 4]}, "compress_ratios[44]: found 4; expected one of 0"),
        (
            {"layer_types": ["sliding_attention"] * 3 + [WORDS[ratio] for ratio in RATIOS[3:43]]},
            "layer_types: found layer 2; expected what compress_ratios says",
        ),
        (
            {"compress_rates": {"compressed_sparse_attention": 8}},
            "compress_rates.compressed_sparse_attention: found 8; expected the pool of this attention, 4",
        ),
        ({"num_hash_layers": GONE}, "num_hash_layers: found missing; expected an integer from 0 to 43"),
        (
            {"mlp_layer_types": ["moe"] * 43},
            "mlp_layer_types: found other layers; expected hash_moe on the first 3",
        ),
        ({"num_key_value_heads": 8}, "num_key_value_heads: found 8; expected one row for all heads, 1"),
        ({"o_groups": 7}, "o_groups: found 7; expected a divisor of num_attention_heads, 64"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
