"""What holds for every model, start and memory: nothing fits less with more, and answers are exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.engines.vllm import (
    CachePlan,
    EngineRefusedError,
    Kind,
    KvDtype,
    SpecMethod,
    VllmSettings,
    known_versions,
    plan_states,
)
from modelbones.units import GIB
from tests.engines.vllm.models import MODELS

SPARSE_HYBRID = {"glm53": ("0.30.0", "0.31.0", "0.32.0", "0.33.0")}


@st.composite
def starts(draw: st.DrawFn) -> tuple[str, VllmSettings]:
    name = draw(st.sampled_from(sorted(MODELS)))
    version = draw(st.sampled_from(SPARSE_HYBRID.get(name, known_versions())))
    num_spec = draw(st.sampled_from((0, 0, 1, 3))) if MODELS[name].mtp else 0
    settings = VllmSettings(
        version=version,
        tp=draw(st.sampled_from((1, 2, 4))),
        kv_dtype=draw(st.sampled_from((KvDtype.AUTO, KvDtype.FP8))),
        spec_method=SpecMethod.MTP if num_spec else SpecMethod.NONE,
        num_spec=num_spec,
        prefix_caching=draw(st.booleans()),
        capability=draw(st.sampled_from((9, 10, 12))),
        max_batched_tokens=draw(st.sampled_from((512, 8192))),
        max_model_len=draw(st.integers(1, 1 << 20)),
    )
    return name, settings


def plan_of(start: tuple[str, VllmSettings], memory: int) -> CachePlan:
    return plan_states(MODELS[start[0]], start[1], memory=memory)


MEMORY = st.integers(0, 64 * GIB)


@given(starts(), MEMORY, MEMORY)
def test_more_memory_never_fits_less(start: tuple[str, VllmSettings], one: int, other: int) -> None:
    less, more = (plan_of(start, nbytes) for nbytes in sorted((one, other)))
    context = start[1].max_model_len
    assert less.num_blocks <= more.num_blocks
    assert less.max_sequences(context) <= more.max_sequences(context)
    assert less.max_context() <= more.max_context()


@given(starts(), MEMORY, st.data())
def test_a_longer_context_never_fits_more(start: tuple[str, VllmSettings], memory: int, data: st.DataObject) -> None:
    plan, most = plan_of(start, memory), start[1].max_model_len
    short, long = sorted(data.draw(st.integers(1, most)) for _ in range(2))
    assert plan.blocks_of(short) <= plan.blocks_of(long)
    assert plan.max_sequences(short) >= plan.max_sequences(long)


@given(starts(), MEMORY, st.integers(1, 64))
def test_the_answer_fits_and_answer_plus_one_does_not(
    start: tuple[str, VllmSettings], memory: int, concurrency: int
) -> None:
    plan, most = plan_of(start, memory), start[1].max_model_len
    sequences = plan.max_sequences(most)
    assert sequences * plan.blocks_of(most) <= plan.usable_blocks < (sequences + 1) * plan.blocks_of(most)
    longest = plan.max_context(concurrency)
    if longest:
        assert concurrency * plan.blocks_of(longest) <= plan.usable_blocks
    if longest < most:
        assert concurrency * plan.blocks_of(longest + 1) > plan.usable_blocks


@given(starts(), MEMORY)
def test_the_pool_is_whole_blocks_and_holds_every_group(start: tuple[str, VllmSettings], memory: int) -> None:
    plan = plan_of(start, memory)
    assert 0 <= memory - plan.num_blocks * plan.bytes_per_block < plan.bytes_per_block
    assert all(group.nbytes <= plan.bytes_per_block for group in plan.groups)


@given(starts(), MEMORY)
def test_every_state_of_every_layer_is_in_one_group(start: tuple[str, VllmSettings], memory: int) -> None:
    plan, model, settings = plan_of(start, memory), MODELS[start[0]], start[1]
    kept = model.states + (model.mtp if settings.num_spec else ())
    for kind in (Kind.RECURRENT, Kind.KV, Kind.WINDOW, Kind.LATENT):
        grouped = sum(pages.layers for group in plan.groups for pages in group.pages if pages.kind is kind)
        assert grouped == sum(state.kind is kind for state in kept)


@given(starts(), MEMORY)
def test_too_small_and_the_longest_context_agree(start: tuple[str, VllmSettings], memory: int) -> None:
    plan = plan_of(start, memory)
    small = plan.too_small
    if small is None:
        assert plan.blocks_per_request <= plan.num_blocks
        return
    assert small.max_context < plan.max_model_len
    assert small.needed_bytes > small.available_bytes


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("version", known_versions())
def test_what_tensor_parallelism_splits_never_grows_with_it(name: str, version: str) -> None:
    """A rank's recurrent page and block, from one rank to eight; latents stay whole."""
    held = []
    for tp in (1, 2, 4, 8):
        settings = VllmSettings(version=version, tp=tp, max_model_len=8192)
        if settings.rules.sparse_layout is None and name == "glm53":
            with pytest.raises(EngineRefusedError, match=r"0\.30 or later"):
                plan_states(MODELS[name], settings, num_blocks=1)
            return
        plan = plan_states(MODELS[name], settings, num_blocks=1)
        held.append((plan.alignment.state_page, plan.bytes_per_block))
    assert held == sorted(held, reverse=True)
