"""`Figure`: one printed number, recomputed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from modelbones.engines.vllm import CachePlan
from modelbones.explain.log import EngineLog
from modelbones.explain.meanings import meaning_of
from modelbones.explain.pool import Pool, concurrency_of, estimate_of, gib_of

Shown = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of the log.

    Attributes:
        name: What is printed, stable in JSON.
        label: The engine's own words for it.
        logged: As the log prints it.
        computed: As it comes out here; None when it cannot be recomputed.
        matches: Whether both are the same; None when there is nothing to compare.
        meaning: What it says, in plain words.
        reason: Why it does not match, or cannot be compared; empty otherwise.
    """

    name: str
    label: str
    logged: Shown
    computed: Shown | None
    matches: bool | None
    meaning: str
    reason: str = ""


LABELS = {
    "block_tokens": "attention block size",
    "padding_percent": "mamba page padding",
    "padding_layers": "padding layers",
    "available_memory_gib": "available KV cache memory",
    "num_blocks": "GPU blocks",
    "cache_tokens": "GPU KV cache size",
    "concurrency": "maximum concurrency",
    "needed_gib": "KV cache needed",
    "estimated_context": "estimated maximum model length",
}
"""Name of a figure -> the engine's words."""


def logged_figures(log: EngineLog) -> Iterator[tuple[str, Shown]]:
    """Every figure of the log, in the order the engine prints them."""
    if log.block_tokens is not None:
        yield "block_tokens", log.block_tokens
    if log.padding_percent is not None:
        yield "padding_percent", float(log.padding_percent)
    if log.padding_layers:
        yield "padding_layers", _layers((line.layers, line.percent) for line in log.padding_layers)
    memory = log.memory
    if memory is not None:
        yield "available_memory_gib", float(memory.gib if memory.gib is not None else gib_of(memory.low))
    if log.num_blocks is not None:
        yield "num_blocks", log.num_blocks
    if log.cache_tokens is not None:
        yield "cache_tokens", log.cache_tokens
    if log.concurrency is not None:
        yield "concurrency", float(log.concurrency)
    if log.too_small is not None:
        yield "needed_gib", float(log.too_small.needed)
        if log.too_small.estimated_context is not None:
            yield "estimated_context", log.too_small.estimated_context


def _layers(lines: Iterable[tuple[int, Decimal]]) -> str:
    return ", ".join(sorted({f"{layers} ({percent:.2f} %)" for layers, percent in lines}))


def compare(log: EngineLog, plan: CachePlan | None, pool: Pool | None) -> tuple[Figure, ...]:
    """Every figure of `log` beside what `plan` gives."""
    sized = plan if plan is None or pool is None else replace(plan, num_blocks=pool.num_blocks, memory=None)
    return tuple(_figure(log, name, logged, sized, pool) for name, logged in logged_figures(log))


def _figure(log: EngineLog, name: str, logged: Shown, plan: CachePlan | None, pool: Pool | None) -> Figure:
    computed = None if plan is None else _computed(name, log, plan, pool)
    matches = None if computed is None else computed == logged
    return Figure(
        name=name,
        label=LABELS[name],
        logged=logged,
        computed=computed,
        matches=matches,
        meaning=meaning_of(name, log, plan, pool),
    )


def _computed(name: str, log: EngineLog, plan: CachePlan, pool: Pool | None) -> Shown | None:
    match name:
        case "block_tokens":
            return plan.block_tokens
        case "padding_percent":
            return plan.padding_percent
        case "padding_layers":
            return _layers((pad.layers, Decimal(str(pad.percent))) for pad in plan.padding_layers) or "none"
        case "needed_gib":
            return float(gib_of(plan.request_bytes))
    return None if pool is None else _sized(name, log, plan, pool)


def _sized(name: str, log: EngineLog, plan: CachePlan, pool: Pool) -> Shown | None:
    """What follows from the block count."""
    match name:
        case "num_blocks":
            return _blocks(log, pool)
        case "cache_tokens":
            return plan.logged_tokens
        case "concurrency" if (
            pool.from_memory is not None or log.cache_tokens is not None or log.num_blocks is not None
        ):
            return float(concurrency_of(plan))
        case "estimated_context":
            return estimate_of(plan)
    # The memory is what the rest is computed from; a concurrency alone fits some block count always.
    return None


def _blocks(log: EngineLog, pool: Pool) -> int | None:
    """The count the memory gives, over the engines the printed one counts; None without memory."""
    if pool.from_memory is None or log.num_blocks is None:
        return None
    engines = (log.dp or 1) if log.is_block_sum else 1
    if log.num_blocks % engines == 0 and pool.from_memory.low <= log.num_blocks // engines <= pool.from_memory.high:
        return log.num_blocks
    return (pool.from_memory.low + pool.from_memory.high) // 2 * engines
