"""The answer: parts sum, both directions are exact, and what binds is named."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.dtypes import DType
from modelbones.errors import EngineRefusedError
from modelbones.plan import Memory, Plan, PlanRequest, plan
from modelbones.plan.gpus import GPUS, Gpu, parse_gpus
from modelbones.plan.vllm import VllmCapacity, vllm_capacity
from modelbones.search import last_true
from tests.plan.asking import asked, skeleton

GIB = 2**30
M = 1_048_576
MODELS = ("glm-5.3-flash", "kimi-linear-48b", "qwen3.5-27b", "gpt-oss-120b", "llama-3.1-8b", "glm-5.2")


def answer(request: PlanRequest) -> Plan:
    return plan(request, with_alternatives=False)


@st.composite
def requests(draw: st.DrawFn) -> PlanRequest:
    """A request that some engine takes, of any memory between nothing and a rack's."""
    engine = draw(st.sampled_from(["vllm", "vllm", "metrale", "transformers"]))
    preset = draw(st.sampled_from(MODELS))
    flags: dict[str, object] = {
        "engine": engine,
        "context": draw(st.integers(1, 300_000)),
        "concurrency": draw(st.integers(1, 40)),
        "dp": draw(st.sampled_from([1, 1, 2, 3])),
        "memory": Memory(kv_memory=draw(st.integers(0, 60 * GIB))),
    }
    flags["most_context"] = max(flags["context"], draw(st.sampled_from([4096, 131_072, M])))  # type: ignore[call-overload]
    if engine != "transformers":
        flags["tp"] = draw(st.sampled_from([1, 2, 4]))
        if skeleton(preset).mtp is not None and draw(st.booleans()):
            flags.update(spec_on=True, num_spec=draw(st.integers(1, 4)))
    if engine == "vllm":
        flags["version"] = draw(st.sampled_from(["0.30", "0.31", "0.32", "0.33", "0.1.dev20051"]))
        flags["prefix_caching"] = draw(st.booleans())
        if preset == "kimi-linear-48b":
            flags["block_size"] = 64
        if draw(st.booleans()):
            flags["memory"] = Memory(num_blocks=draw(st.integers(0, 5000)))
    return asked(preset, **flags)


@given(requests())
def test_both_directions_are_exact(request: PlanRequest) -> None:
    found = answer(request)
    most, longest = found.max_sequences, found.max_context
    assert found.fits is (most >= request.concurrency)
    if most:
        assert answer(replace(request, concurrency=most)).fits
    assert not answer(replace(request, concurrency=most + 1)).fits
    assert longest <= request.most_context
    if longest:
        assert answer(replace(request, context=longest)).fits
    if longest < request.most_context:
        assert not answer(replace(request, context=longest + 1)).fits


@given(requests())
def test_parts_sum_and_what_fits_is_within_the_memory(request: PlanRequest) -> None:
    found = answer(request)
    for rank in found.ranks:
        assert rank.total == sum(rank.parts.values())
        assert all(size >= 0 for size in rank.parts.values())
    memory = request.memory.kv_memory
    if memory is not None and found.fits:
        for rank in found.ranks:
            outside = sum(size for part, size in rank.parts.items() if part.startswith("weights."))
            assert rank.total == outside + memory


@given(requests(), st.integers(1, 10 * GIB), st.integers(1, 100_000))
def test_more_memory_never_fits_less_and_a_longer_context_never_fits_more(
    request: PlanRequest, more: int, longer: int
) -> None:
    found = answer(request)
    given_memory = request.memory
    if given_memory.kv_memory is not None:
        richer = replace(request, memory=Memory(kv_memory=given_memory.kv_memory + more))
    else:
        richer = replace(request, memory=Memory(num_blocks=(given_memory.num_blocks or 0) + more))
    assert answer(richer).max_sequences >= found.max_sequences
    assert answer(richer).max_context >= found.max_context
    stretched = replace(request, context=request.context + longer, most_context=request.most_context + longer)
    assert answer(stretched).max_sequences <= found.max_sequences


@given(requests(), st.integers(2, 5))
def test_replicas_scale_the_sequences(request: PlanRequest, replicas: int) -> None:
    one = answer(replace(request, dp=1))
    assert answer(replace(request, dp=replicas)).max_sequences == replicas * one.max_sequences


@given(requests(), st.integers(1, M))
def test_vllms_layout_does_not_depend_on_the_longest_sequence(request: PlanRequest, context: int) -> None:
    """What the search rests on: another context is counted on the same blocks."""
    if request.engine != "vllm":
        return
    memory = request.memory.kv_memory
    once = vllm_capacity(request, request.skeleton, memory)
    anew = vllm_capacity(replace(request, context=context), request.skeleton, memory)
    assert isinstance(once, VllmCapacity)
    too_small = anew.cache.too_small is not None
    assert once.max_sequences(context) == (0 if too_small else anew.cache.max_sequences(context))


@given(st.integers(-1, 50), st.integers(0, 40))
def test_the_last_true_number_is_found(border: int, most: int) -> None:
    assert last_true(lambda number: number <= border, most) == max(0, min(border, most))


@given(
    preset=st.sampled_from(MODELS),
    card=st.sampled_from(sorted(GPUS)),
    tp=st.sampled_from([1, 2, 4, 8]),
    overhead=st.integers(0, 20 * GIB),
    fraction=st.decimals("0.3", "1", places=3),
    engine=st.sampled_from(["vllm", "metrale"]),
)
def test_what_fits_is_within_the_card(
    preset: str, card: str, tp: int, overhead: int, fraction: Decimal, engine: str
) -> None:
    gpu = GPUS[card]
    flags = {"block_size": 64} if engine == "vllm" and preset == "kimi-linear-48b" else {}
    request = asked(
        preset, engine=engine, gpu=gpu, gpu_count=tp, tp=tp, memory=Memory(overhead=overhead),
        memory_fraction=fraction, **flags,
    )  # fmt: skip
    try:
        found = answer(request)
    except EngineRefusedError:
        return
    for rank in found.ranks:
        assert rank.available == int(gpu.memory * fraction)
        assert rank.parts["overhead"] == overhead
        if found.fits:
            assert rank.total == rank.available
    if found.fits:
        assert found.binds == "state"


def test_the_weights_that_pass_the_card_bind() -> None:
    """627,781,468,408 bytes on one H200 of 143,771 MiB: nothing is left, and no capacity is said."""
    gpu_count, gpu = parse_gpus("H200")
    found = plan(asked(gpu=gpu, gpu_count=gpu_count, memory=Memory(overhead=0)))
    assert (found.fits, found.binds, found.max_sequences, found.max_context) == (False, "weights", 0, 0)
    assert found.capacity == {}
    assert found.ranks[0].total == 627_781_468_408 > 143_771 * M * 9 // 10


def test_memory_for_state_that_passes_the_card_beside_the_weights_fits_nothing() -> None:
    """It once said how many sequences it would hold, and that another dtype fits."""
    _, gpu = parse_gpus("H200")
    for memory in (Memory(kv_memory=GIB), Memory(num_blocks=500)):
        found = plan(asked(gpu=gpu, memory=memory))
        assert (found.fits, found.binds, found.max_sequences, found.max_context) == (False, "weights", 0, 0)
        assert {each.fits for each in found.alternatives} == {False}


def test_memory_for_state_is_taken_whatever_the_fraction_says() -> None:
    _, gpu = parse_gpus("96GiB")
    flags = {"gpu": gpu, "memory": Memory(kv_memory=70 * GIB), "memory_fraction": Decimal("0.5")}
    found = answer(asked("llama-3.1-8b", **flags))
    assert found.fits
    assert found.ranks[0].available == 96 * GIB


@pytest.mark.parametrize("engine", ["vllm", "metrale", "transformers"])
def test_a_context_too_long_for_the_rest_of_the_card_is_what_binds(engine: str) -> None:
    """Of metrale and transformers it once said that the weights bind."""
    gpu = Gpu(name="20GiB", memory=20 * GIB, capability=9)
    request = asked("llama-3.1-8b", engine=engine, gpu=gpu, memory=Memory(overhead=0), context=131_072)
    found = answer(request)
    assert (found.fits, found.binds, found.max_sequences) == (False, "context", 0)
    assert 0 < found.max_context < 131_072


def test_a_draft_model_is_loaded_on_the_last_stage_alone() -> None:
    """Qwen3-8B drafts for Qwen3.5-27B: its 16,381,470,720 bytes of bf16, once."""
    draft = skeleton("qwen3-8b")
    request = asked("qwen3.5-27b", pp=2, draft=draft, num_spec=3, memory=Memory(kv_memory=50 * GIB))
    first, last = answer(request).ranks
    assert "weights.draft" not in first.parts
    assert last.parts["weights.draft"] == 16_381_470_720


def test_stages_are_counted_apart_and_the_tightest_decides() -> None:
    """11, 11, 12 and 11 layers of 45, DSA at every fourth: KDA layers 9, 8, 9, 8."""
    request = asked(engine="metrale", pp=4, context=131_072, memory=Memory(kv_memory=8 * GIB))
    found = answer(request)
    assert [rank.stage for rank in found.ranks] == [0, 1, 2, 3]
    sparse = [rank.parts["state.reserve"] // (513 * 131_072) for rank in found.ranks]
    assert sum(sparse) == 11
    slots = [rank.parts["state.scratch_slot"] for rank in found.ranks]
    assert sum(slots) == 34 * (4_194_304 + 24_576 * 3 * 2)


@pytest.mark.parametrize(
    ("text", "count", "name", "memory", "capability"),
    [
        ("H200", 1, "H200", 143_771 * M, 9),
        ("8xH100", 8, "H100", 81_559 * M, 9),
        ("2xrtx 5090", 2, "RTX5090", 32_607 * M, 12),
        ("a100-40gb", 1, "A100-40GB", 40_960 * M, 8),
        ("4x96GiB", 4, "96GiB", 96 * GIB, None),
        ("80GB", 1, "80GB", 80 * 10**9, None),
        ("B200", 1, "B200", int(Decimal("178.35") * 1024) * M, 10),
    ],
)
def test_a_card_is_a_name_or_a_size(text: str, count: int, name: str, memory: int, capability: int | None) -> None:
    assert parse_gpus(text) == (count, Gpu(name=name, memory=memory, capability=capability))


def test_alternatives_are_what_a_plan_of_their_own_says() -> None:
    count, gpu = parse_gpus("8xH200")
    request = asked(gpu=gpu, gpu_count=count, tp=8, memory=Memory(overhead=5 * GIB), context=M, most_context=M)
    alternatives = {each.change: each for each in plan(request).alternatives}
    for dtype in ("bf16", "fp8", "fp8_ds_mla"):
        own = answer(replace(request, kv_dtype=dtype))
        listed = alternatives[f"--kv-dtype {dtype}"]
        assert (listed.fits, listed.max_sequences) == (own.fits, own.max_sequences)
    own = answer(replace(request, gpu=GPUS["b200"]))
    assert alternatives["--gpu 8xB200"].max_sequences == own.max_sequences > 0
    assert alternatives["--gpu 8xT4"].max_sequences == 0


def test_a_lighter_recurrent_state_never_fits_less() -> None:
    request = asked("kimi-linear-48b", block_size=64, memory=Memory(kv_memory=4 * GIB))
    lighter = replace(request, state_dtype=DType.BF16)
    assert answer(lighter).max_sequences >= answer(request).max_sequences
