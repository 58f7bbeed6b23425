"""Layouts derived by hand: windows, Mamba-2, a request of GLM-5.3-Flash, the longest context."""

from __future__ import annotations

import pytest

from modelbones.engines.vllm import CachePlan, Kind, KvDtype, VllmSettings, plan_states
from modelbones.units import GIB
from tests.engines.vllm.models import MODELS, full, model, window


def start(version: str = "0.31", context: int = 131_072, **given: object) -> VllmSettings:
    return VllmSettings(**{"version": version, "max_model_len": context, **given})  # type: ignore[arg-type]


def plan(name: str, settings: VllmSettings, num_blocks: int = 1000) -> CachePlan:
    return plan_states(MODELS[name], settings, num_blocks=num_blocks)


@pytest.mark.parametrize(("version", "window_blocks"), [("0.19.1", 521), ("0.25", 521), ("0.27", 1033), ("0.33", 1033)])
def test_gpt_oss_holds_two_groups_of_18_layers(version: str, window_blocks: int) -> None:
    """8 heads of 64, keys and values, bf16: 2,048 bytes a token, 16 tokens a block. A window of 128
    with one or two batches of 8,192 tokens in flight: (127 + 8,192) / 16 or (127 + 16,384) / 16, and one."""
    made = plan("gpt_oss_120b", start(version))
    assert [(group.kind, group.num_layers) for group in made.groups] == [(Kind.WINDOW, 18), (Kind.KV, 18)]
    assert made.bytes_per_block == 18 * 16 * 2048
    assert made.blocks_per_request == window_blocks + 131_072 // 16


@pytest.mark.parametrize(("version", "state_blocks"), [("0.19.1", 2), ("0.31", 2), ("0.32", 3), ("0.33", 3)])
def test_nemotron_holds_its_state_in_four_groups(version: str, state_blocks: int) -> None:
    """64 x 64 x 128 fp32 and 3 x 6,144 bf16: 2,134,016 bytes; 2 heads of 128: 1,024 bytes a token."""
    made = plan("nemotron_h_30b", start(version))
    assert made.alignment.state_page == 64 * 64 * 128 * 4 + 3 * (64 * 64 + 2 * 8 * 128) * 2 == 2_134_016
    assert made.block_tokens == 131 * 16
    assert sorted(group.num_layers for group in made.groups) == [5, 6, 6, 6, 6]
    assert made.bytes_per_block == 6 * 2096 * 1024
    assert made.blocks_per_request == 4 * state_blocks + 63


def test_buckets_of_nearly_one_size_take_the_larger() -> None:
    """10 and 12 layers: groups of 12, two padding layers; 10 and 15: groups of 10, five."""
    near, far = (model("gpt_oss", [window(8, 64, 128)] * 10 + [full(8, 64)] * n, (8,)) for n in (12, 15))
    near_plan, far_plan = (plan_states(states, start(), num_blocks=1) for states in (near, far))
    assert [group.num_layers for group in near_plan.groups] == [10, 12]
    assert [(pad.layers, pad.percent) for pad in near_plan.padding_layers] == [(2, 20.0)]
    assert [group.num_layers for group in far_plan.groups] == [10, 8, 7]
    assert [(pad.layers, pad.percent) for pad in far_plan.padding_layers] == [(5, 33.33)]


def test_pages_of_two_sizes_are_made_one_by_a_longer_block() -> None:
    """Two key heads beside eight: a page four times smaller takes a block of four times the tokens."""
    states = model("gpt_oss", [full(8, 64), window(2, 64, 128)], (8,))
    made = plan_states(states, start(), num_blocks=1)
    assert [group.block_tokens for group in made.groups] == [16, 64]


@pytest.mark.parametrize(
    ("context", "align", "none", "gib"),
    [
        (4096, 10, 6, 0.4713),
        (32_768, 17, 13, 0.8011),
        (131_072, 40, 36, 1.8850),
        (262_144, 70, 66, 3.2988),
        (1_048_576, 250, 246, 11.7814),
    ],
)
def test_what_one_sequence_of_glm_holds(context: int, align: int, none: int, gib: float) -> None:
    """Latent, tail and four recurrent groups of 2 blocks, or 1 without prefix caching."""
    on = plan("glm53", start(context=1_048_576))
    off = plan("glm53", start(context=1_048_576, prefix_caching=False))
    assert (on.blocks_of(context), off.blocks_of(context)) == (align, none)
    assert round(align * on.bytes_per_block / GIB, 4) == gib


def test_the_null_block_holds_no_request() -> None:
    made = plan("llama31_8b", start(context=4096), num_blocks=257)
    assert (made.usable_blocks, made.max_sequences(4096), made.max_context()) == (256, 1, 4096)
    assert plan("llama31_8b", start(context=4096), num_blocks=256).max_context() == 255 * 16
    assert plan("llama31_8b", start(context=4096), num_blocks=0).max_context() == 0


def test_the_estimate_counts_the_null_block_from_0_29_on() -> None:
    """Qwen3.5-27B over two ranks: 113 blocks less 6 of state, 1,568 tokens each; later one less."""
    older, later = (
        plan("qwen3_5_27b", start(version, 262_144, tp=2, kv_dtype=KvDtype.FP8), num_blocks=113).too_small
        for version in ("0.28", "0.30")
    )
    assert older is not None
    assert later is not None
    assert (older.max_context, later.max_context) == (107 * 1568, 106 * 1568)


def test_dcp_shares_the_context_and_not_the_state() -> None:
    alone, shared = (plan("glm53", start(context=1_048_576, tp=8, dcp=dcp)) for dcp in (1, 8))
    assert alone.fixed_blocks == shared.fixed_blocks
    assert [group.blocks(1_048_576) for group in (alone.groups[0], shared.groups[0])] == [1639, 205]
