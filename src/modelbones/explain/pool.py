"""How many blocks the pool has: the count that gives every printed figure, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum

from modelbones.engines.vllm import CachePlan
from modelbones.explain.log import EngineLog, Memory
from modelbones.search import last_true
from modelbones.units import GIB

_MOST = 1 << 80
Value = int | Decimal


class Basis(Enum):
    """What a block count rests on."""

    BLOCKS = "blocks"
    """The log prints it."""
    MEMORY = "memory"
    """The printed memory."""
    FIGURES = "figures"
    """The logged tokens or concurrency alone."""


@dataclass(frozen=True, slots=True)
class Span:
    """Block counts from `low` to `high`, both counted; none when `high` is less."""

    low: int
    high: int

    @property
    def is_empty(self) -> bool:
        """Whether no count is in it."""
        return self.high < self.low

    def meets(self, other: Span) -> Span:
        """The counts of both."""
        return Span(max(self.low, other.low), min(self.high, other.high))

    def nearest(self, other: Span) -> int:
        """The count of this one that is nearest to `other`."""
        middle = (other.low + other.high) // 2
        return min(max(middle, self.low), self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The block count of one rank.

    Attributes:
        num_blocks: The count everything is recomputed from.
        basis: What it rests on.
        from_memory: Counts the printed memory allows; None when none is printed.
        from_figures: Counts the logged capacity allows; None when none is logged, empty
            when none gives it.
    """

    num_blocks: int
    basis: Basis
    from_memory: Span | None
    from_figures: Span | None


def pool_of(log: EngineLog, plan: CachePlan) -> Pool | None:
    """The pool of `log` laid out as `plan` says; None when the log prints nothing of it."""
    memory = _from_memory(log, plan)
    printed = _printed(log)
    base = memory if printed is None else Span(printed, printed)
    figures = _all(log, plan)
    if base is None:
        if figures is None:
            return None
        one = next((span for span in (figures, *_spans(log, plan)) if not span.is_empty), None)
        return (
            None
            if one is None
            else Pool(num_blocks=one.low, basis=Basis.FIGURES, from_memory=None, from_figures=figures)
        )
    basis = Basis.MEMORY if printed is None else Basis.BLOCKS
    choices = () if figures is None else (figures, *_spans(log, plan))
    common = next((both for span in choices if not (both := base.meets(span)).is_empty), None)
    nearest = next((span for span in choices if not span.is_empty), None)
    count = base.nearest(nearest) if common is None and nearest is not None else (common or base).low
    return Pool(num_blocks=count, basis=basis, from_memory=memory, from_figures=figures)


def concurrency_of(plan: CachePlan) -> Decimal:
    """The concurrency as it is logged, two decimals."""
    return Decimal(f"{plan.logged_concurrency:.2f}")


def estimate_of(plan: CachePlan) -> int:
    """The "estimated maximum model length" in tokens."""
    return plan.max_model_len if plan.too_small is None else plan.too_small.max_context


def _printed(log: EngineLog) -> int | None:
    """Blocks of one engine: the API server adds those of all."""
    engines = (log.dp or 1) if log.is_block_sum else 1
    return None if log.num_blocks is None or log.num_blocks % engines else log.num_blocks // engines


def _from_memory(log: EngineLog, plan: CachePlan) -> Span | None:
    memory, spare = log.memory, 0
    if memory is None and log.too_small is not None:
        # The refusal prints what is left without the null block.
        memory = Memory.of_gib(log.too_small.available)
        spare = int(plan.rules.reserves_null_block)
    if memory is None:
        return None
    # Each of several engines has a pool of its own, and which memory is whose is not printed.
    most = max((each.high for each in log.memories), default=0) if (log.dp or 1) > 1 else 0
    low, high = (edge // plan.bytes_per_block + spare for edge in (memory.low, max(memory.high, most)))
    return Span(low, high)


def _spans(log: EngineLog, plan: CachePlan) -> tuple[Span, ...]:
    """Counts each logged figure allows."""
    wanted: list[tuple[Value | None, Callable[[CachePlan], Value]]] = [
        (log.cache_tokens, lambda sized: sized.logged_tokens),
        (log.concurrency, concurrency_of),
        (None if log.too_small is None else log.too_small.estimated_context, estimate_of),
    ]
    return tuple(_span(plan, value, of) for value, of in wanted if value is not None)


def _all(log: EngineLog, plan: CachePlan) -> Span | None:
    spans = _spans(log, plan)
    if not spans:
        return None
    every = spans[0]
    for span in spans[1:]:
        every = every.meets(span)
    return every


def _span(plan: CachePlan, value: Value, of: Callable[[CachePlan], Value]) -> Span:
    """Counts for which the growing figure `of` is `value`."""

    def sized(count: int) -> Value:
        return of(replace(plan, num_blocks=count, memory=None))

    if sized(0) > value:
        return Span(1, 0)
    below = last_true(lambda count: sized(count) < value, _MOST)
    at_most = last_true(lambda count: sized(count) <= value, _MOST)
    first = 0 if sized(0) == value else below + 1
    return Span(first, at_most)


def gib_of(nbytes: int) -> Decimal:
    """Bytes in GiB, two decimals, as logged."""
    return (Decimal(nbytes) / GIB).quantize(Decimal("0.01"))
