"""`plan`: what fits on these ranks, exactly, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from modelbones.errors import EngineRefusedError, UsageError
from modelbones.plan.capacity import Capacity, capacity_of
from modelbones.plan.gpus import GPUS
from modelbones.plan.request import PlanRequest
from modelbones.plan.stages import stages
from modelbones.plan.weights import Weights, from_census, from_recipe
from modelbones.ranks import Axis, Ranks
from modelbones.search import last_true
from modelbones.skeleton import Skeleton


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlan:
    """The ranks of one pipeline stage, which are alike; the widest is shown.

    Attributes:
        stage: Its number.
        ranks: How many ranks are like it, over all replicas.
        parts: Bytes by part; they sum to `total`.
        available: Bytes of the card the engine may use; None without a card.
    """

    stage: int
    ranks: int
    parts: Mapping[str, int]
    available: int | None

    @property
    def total(self) -> int:
        """Bytes of everything on the rank."""
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What one change would give.

    Attributes:
        change: The flag as it would be written.
        fits: Whether the request would then fit.
        max_sequences: Sequences at once, over all replicas.
    """

    change: str
    fits: bool
    max_sequences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer.

    Attributes:
        request: The question.
        ranks: One entry a pipeline stage.
        fits: Whether `concurrency` sequences of `context` tokens fit.
        binds: What stands in the way, or would next: "weights" (with the overhead or the state
            asked for they pass the card), "context" (not even one sequence), "state".
        max_sequences: Most sequences of `context` tokens, over all replicas.
        max_context: Longest context at `concurrency`, up to what the model declares.
        capacity: The tightest stage's capacity in the engine's figures.
        alternatives: What another element type or card would give.
    """

    request: PlanRequest
    ranks: tuple[RankPlan, ...]
    fits: bool
    binds: str
    max_sequences: int
    max_context: int
    capacity: Mapping[str, Any]
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class _Cut:
    """One stage whatever the card and the element types: its layers and its weights."""

    skeleton: Skeleton
    weights: Weights


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage while it is planned: what is left for state, the capacity of that, whether it passes the card.

    `capacity` is None when the weights and the overhead alone pass it.
    """

    weights: Weights
    memory: int | None
    capacity: Capacity | None
    is_over: bool


def plan(request: PlanRequest, *, with_alternatives: bool = True) -> Plan:
    """What fits.

    Raises:
        EngineRefusedError: The engine would not start so, whatever the memory.
        SourceError: The checkpoint lacks weights that would be loaded.
        UsageError: Flags that contradict each other or the engine.
    """
    cuts = _cut(request)
    staged = _staged(request, cuts)
    is_over = any(stage.is_over for stage in staged)
    most = _most(request, staged)
    tightest = min(staged, key=lambda stage: _sequences(stage, request.context))
    return Plan(
        request=request,
        ranks=tuple(_rank(request, number, stage, most) for number, stage in enumerate(staged)),
        fits=most >= request.concurrency,
        binds="weights" if is_over else "context" if not most else "state",
        max_sequences=most,
        max_context=0 if is_over else _max_context(staged, request),
        capacity={} if tightest.capacity is None else tightest.capacity.words(),
        alternatives=_alternatives(request, cuts) if with_alternatives else (),
    )


def _cut(request: PlanRequest) -> tuple[_Cut, ...]:
    ranks = ranks_of(request)
    return tuple(
        _Cut(skeleton, _weights(request, skeleton, ranks))
        for skeleton in stages(request.skeleton, request.pp, with_mtp=request.spec_on)
    )


def _staged(request: PlanRequest, cuts: tuple[_Cut, ...]) -> list[_Stage]:
    return [_stage(request, cut) for cut in cuts]


def _stage(request: PlanRequest, cut: _Cut) -> _Stage:
    memory = _state_memory(request, cut.weights)
    if memory is not None and memory < 0:
        return _Stage(cut.weights, memory, None, is_over=True)
    capacity = capacity_of(request, cut.skeleton, memory)
    # Memory for state that was asked for may pass the card beside the weights.
    state = sum(capacity.parts(1).values()) if memory is None else memory
    total = cut.weights.total() + (request.memory.overhead or 0) + state
    return _Stage(cut.weights, memory, capacity, is_over=request.card_bytes is not None and total > request.card_bytes)


def _most(request: PlanRequest, staged: list[_Stage]) -> int:
    """Most sequences over all replicas; 0 where a stage passes its card."""
    if any(stage.is_over for stage in staged):
        return 0
    return _max_sequences(staged, request.context) * request.dp


def ranks_of(request: PlanRequest) -> Ranks:
    """How the weights are cut: heads, MLPs and vocabulary by tp, experts by ep or, without it, inside by tp.

    vLLM cuts inside experts by every rank of a stage, data-parallel ones too. Source:
    vllm-project/vllm vllm/model_executor/layers/fused_moe/config.py::FusedMoEParallelConfig.make.
    """
    inside = request.tp * request.dp if request.engine == "vllm" else request.tp
    return Ranks.of(
        {
            Axis.HEADS: request.tp,
            Axis.FFN: request.tp,
            Axis.VOCAB: request.tp,
            Axis.EXPERT_FFN: inside if request.ep == 1 else 1,
            Axis.EXPERTS: request.ep,
        }
    )


def _weights(request: PlanRequest, skeleton: Skeleton, ranks: Ranks) -> Weights:
    with_mtp = request.spec_on
    if request.census is not None:
        weights = from_census(skeleton, request.census.tensors, ranks, with_mtp=with_mtp, place=request.census.place)
    else:
        weights = from_recipe(skeleton, request.recipe, ranks, with_mtp=with_mtp)
    if request.draft is not None and skeleton.layers[-1] is request.skeleton.layers[-1]:
        weights["weights.draft"] = from_recipe(request.draft, None, ranks, with_mtp=False).total()
    return weights


def _state_memory(request: PlanRequest, weights: Weights) -> int | None:
    """Bytes for state on a rank; negative when the weights alone are too much, None with blocks given."""
    if request.memory.kv_memory is not None:
        return request.memory.kv_memory
    if request.usable is None or request.memory.overhead is None:
        return None
    return request.usable - weights.total() - request.memory.overhead


def _sequences(stage: _Stage, context: int) -> int:
    return 0 if stage.capacity is None else stage.capacity.max_sequences(context)


def _max_sequences(staged: list[_Stage], context: int) -> int:
    return min(_sequences(stage, context) for stage in staged)


def _max_context(staged: list[_Stage], request: PlanRequest) -> int:
    """The longest context at which every replica serves its share; context + 1 does not fit."""
    wanted = max(1, request.per_replica)
    return last_true(lambda context: _max_sequences(staged, context) >= wanted, request.most_context)


def _rank(request: PlanRequest, number: int, stage: _Stage, most: int) -> RankPlan:
    parts: dict[str, int] = dict(stage.weights)
    if request.memory.overhead is not None:
        parts["overhead"] = request.memory.overhead
    if stage.capacity is not None:
        shown = max(1, min(request.concurrency, most) if most else request.concurrency)
        state = stage.capacity.parts(-(-shown // request.dp))
        parts.update(state)
        unused = None if stage.memory is None else stage.memory - sum(state.values())
        if unused is not None and unused > 0:
            parts["unused"] = unused
    return RankPlan(stage=number, ranks=request.tp * request.dp, parts=parts, available=request.card_bytes)


def _alternatives(request: PlanRequest, cuts: tuple[_Cut, ...]) -> tuple[Alternative, ...]:
    found = []
    if request.engine == "vllm":
        for dtype in ("auto", "bf16", "fp8", "fp8_ds_mla"):
            if dtype != request.kv_dtype:
                found.append((f"--kv-dtype {dtype}", replace(request, kv_dtype=dtype)))
    if request.gpu is not None and request.memory.overhead is not None:
        for gpu in GPUS.values():
            if gpu.memory != request.gpu.memory:
                count = f"{request.gpu_count}x" if request.gpu_count > 1 else ""
                found.append((f"--gpu {count}{gpu.name}", replace(request, gpu=gpu)))
    return tuple(each for change, other in found if (each := _alternative(change, other, cuts)) is not None)


def _alternative(change: str, request: PlanRequest, cuts: tuple[_Cut, ...]) -> Alternative | None:
    """What a change gives; None when the engine refuses it."""
    try:
        most = _most(request, _staged(request, cuts))
    except (EngineRefusedError, UsageError):
        return None
    return Alternative(change=change, fits=most >= request.concurrency, max_sequences=most)
