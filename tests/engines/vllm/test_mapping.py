"""From a skeleton's buffers to the allocator's states: nothing lost, nothing made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelbones.buffers import Growth
from modelbones.dtypes import DType
from modelbones.engines.vllm import (
    EngineRefusedError,
    Kind,
    LayerState,
    VllmSettings,
    plan_cache,
    plan_states,
    states_of,
)
from modelbones.engines.vllm.mapping import drafter_states
from modelbones.families.registry import build, preset_names, read_config
from modelbones.skeleton import Skeleton
from tests.engines.vllm.models import MODELS
from tests.engines.vllm.test_grid import POINTS, settings_of

PRESETS = {
    "glm53": "glm-5.3-flash",
    "kimi_linear": "kimi-linear-48b",
    "qwen3_5_27b": "qwen3.5-27b",
    "qwen3_5_35b": "qwen3.5-35b-a3b",
    "qwen3_next": "qwen3-next-80b-a3b",
    "glm_moe_dsa": "glm-5.2",
    "deepseek_v32": "deepseek-v3.2",
    "llama31_8b": "llama-3.1-8b",
    "qwen3_30b": "qwen3-30b-a3b",
    "gpt_oss_120b": "gpt-oss-120b",
    "nemotron_h_30b": "nemotron-3-nano-30b-a3b",
}
"""Re-typed model of these tests -> the built-in preset of the same release."""
BOTH = [pytest.param(name, preset, id=preset) for name, preset in PRESETS.items()]

Row = tuple[int, Kind, tuple[tuple[tuple[int, ...], DType, Growth, Any], ...]]


def skeleton_of(preset: str) -> Skeleton:
    return build(read_config(preset))


def _rows(states: tuple[LayerState, ...]) -> list[Row]:
    """What the allocator reads of each state: not the names of buffers and terms."""
    return [
        (state.layer, state.kind, tuple((b.shape, b.dtype, b.per, b.split) for b in state.buffers)) for state in states
    ]


@pytest.mark.parametrize(("name", "preset"), BOTH)
def test_a_skeleton_gives_the_states_typed_by_hand(name: str, preset: str) -> None:
    mapped, typed = states_of(skeleton_of(preset)), MODELS[name]
    assert _rows(mapped.states) == _rows(typed.states)
    assert _rows(mapped.mtp) == _rows(typed.mtp)
    assert (mapped.model_type, mapped.query_heads) == (typed.model_type, typed.query_heads)


@pytest.mark.parametrize(("name", "preset"), BOTH)
def test_a_skeleton_gives_the_grids_answers(name: str, preset: str) -> None:
    skeleton = skeleton_of(preset)
    points = [point for point in POINTS if point["model"] == name and point["verdict"] != "refused"]
    for point in points:
        settings, memory = settings_of(point), int(point["memory"])
        assert plan_cache(skeleton, settings, memory=memory) == plan_states(MODELS[name], settings, memory=memory)


UNMAPPED = frozenset({"deepseek-v4-flash"})
"""Built-in models with states whose vLLM layout no source here tells."""


@pytest.mark.parametrize("preset", preset_names())
def test_every_built_in_model_is_mapped_or_refused(preset: str) -> None:
    if preset in UNMAPPED:
        with pytest.raises(EngineRefusedError, match="expected one of gdn_conv"):
            states_of(skeleton_of(preset))
        return
    mapped = states_of(skeleton_of(preset))
    assert mapped.states
    assert mapped.query_heads


def test_glm_keeps_67_states_and_6_of_its_mtp_layer_and_the_proposer_none() -> None:
    mapped = states_of(skeleton_of("glm-5.3-flash"))
    kinds = [state.kind for state in mapped.states]
    assert (kinds.count(Kind.RECURRENT), kinds.count(Kind.LATENT), kinds.count(Kind.INDEX)) == (34, 11, 11)
    assert [state.kind for state in mapped.mtp] == [Kind.LATENT, Kind.INDEX]


def test_a_drafter_is_marked_so() -> None:
    assert all(state.is_draft for state in drafter_states(skeleton_of("llama-3.1-8b")))


def test_a_state_no_rule_maps_is_refused() -> None:
    skeleton = skeleton_of("llama-3.1-8b")
    first, *others = skeleton.layers
    part, *rest = first.parts
    odd = replace(part, buffers=(replace(part.buffers[0], name="momentum", term="momentum"),))
    odd_skeleton = replace(skeleton, layers=(replace(first, parts=(odd, *rest)), *others))
    with pytest.raises(EngineRefusedError) as caught:
        plan_cache(odd_skeleton, VllmSettings(version="0.33", max_model_len=1), num_blocks=1)
    assert str(caught.value) == (
        'vllm: layer 0: found state "momentum" of term "momentum"; expected one of gdn_conv, gdn_recurrent, '
        "indexer.k_normed, indexer.key, kda_conv, kda_recurrent, kv, latent, rope_key, ssm, ssm_conv, window_kv; "
        "say how the engine stores it (engines/vllm/mapping.py)"
    )
