"""What each printed figure says, in plain words."""

from __future__ import annotations

from collections.abc import Callable

from modelbones.engines.vllm import CachePlan, LogFormula
from modelbones.explain.log import EngineLog
from modelbones.explain.pool import Pool
from modelbones.units import format_bytes

Meaning = Callable[[EngineLog, CachePlan | None, Pool | None], str]


def meaning_of(name: str, log: EngineLog, plan: CachePlan | None, pool: Pool | None) -> str:
    """What the figure `name` says; with its numbers where `plan` has them."""
    return _MEANINGS[name](log, plan, pool)


def _block(_: EngineLog, plan: CachePlan | None, __: Pool | None) -> str:
    if plan is None or not plan.alignment.state_page:
        return "Tokens of one block: wide enough that one attention page holds one layer's recurrent state."
    return (
        f"One attention page must hold one layer's recurrent state, {plan.alignment.state_page:,} bytes, so a block "
        f"is {plan.block_tokens:,} tokens. Memory and cache hits come in steps of that many tokens."
    )


def _padding(_: EngineLog, plan: CachePlan | None, __: Pool | None) -> str:
    if plan is None:
        return "What a recurrent page is stretched by to be as large as an attention page; it holds nothing."
    stretched, own = plan.alignment.padded_page, plan.alignment.state_page
    spare = stretched - own
    return f"A recurrent page is stretched from {own:,} to {stretched:,} bytes; the {spare:,} bytes hold nothing."


def _layers(_: EngineLog, plan: CachePlan | None, __: Pool | None) -> str:
    groups = "" if plan is None else f" {len(plan.groups)} groups of one size share the block ids."
    return f"Layers that do not exist fill the last group of a kind.{groups} Their share of a block holds nothing."


def _memory(log: EngineLog, plan: CachePlan | None, pool: Pool | None) -> str:
    lines = max(len(log.memories), 1)
    said = "Each worker prints its own; the pool is made of the smallest, on every rank."
    if lines < log.ranks:
        said += f" {lines} of {log.ranks} workers are in this log."
    if plan is None or pool is None:
        return said
    count = f"{pool.num_blocks:,}"
    if pool.from_figures is None and pool.from_memory is not None and pool.from_memory.low < pool.from_memory.high:
        count = f"{pool.from_memory.low:,} to {pool.from_memory.high:,}"
    return f"{said} {count} blocks of {plan.bytes_per_block:,} bytes are made of it."


def _blocks(log: EngineLog, plan: CachePlan | None, _: Pool | None) -> str:
    engines = f", over {log.dp} engines" if log.is_block_sum and (log.dp or 1) > 1 else ""
    size = "" if plan is None else f" of {plan.bytes_per_block:,} bytes"
    return f"Blocks{size} of the pool{engines}. Block 0 is never given to a request."


def _tokens(log: EngineLog, plan: CachePlan | None, _: Pool | None) -> str:
    if plan is None:
        return "Concurrency x longest context in later versions; for hybrids no pool in any version."
    if _is_plain(plan):
        return f"Tokens the blocks hold, {plan.block_tokens * plan.dcp:,} a block: for this model it is the pool."
    if plan.rules.log_formula is LogFormula.REQUESTS:
        return (
            f"Not a pool: {plan.logged_concurrency:.2f} requests x {plan.max_model_len:,} tokens. It changes with the "
            "longest context; only requests of that length add up to it, shorter ones and idle cache hold less."
        )
    least = min(group.block_tokens for group in plan.groups)
    return (
        f"Not a pool: {plan.num_blocks:,} blocks / {len(plan.groups)} groups x {least:,} tokens, as if every group "
        "grew with the context. Recurrent and window groups do not."
    )


def _is_plain(plan: CachePlan) -> bool:
    """Whether one group holds every token and nothing else."""
    return len(plan.groups) == 1 and plan.groups[0].fixed_blocks is None and plan.groups[0].held_tokens is None


def _concurrency(_: EngineLog, plan: CachePlan | None, pool: Pool | None) -> str:
    if plan is None or pool is None:
        return "Blocks of the pool / blocks of one request of the longest context."
    return (
        f"{pool.num_blocks:,} blocks / {plan.blocks_per_request:,} that one request of {plan.max_model_len:,} tokens "
        f"holds. Whole requests: {plan.max_sequences(plan.max_model_len):,}."
    )


def _needed(_: EngineLog, plan: CachePlan | None, __: Pool | None) -> str:
    if plan is None:
        return "What one request of the longest context takes."
    fixed = f"{plan.fixed_blocks:,} of them ({format_bytes(plan.fixed_blocks * plan.bytes_per_block)})"
    return (
        f"One request of {plan.max_model_len:,} tokens takes {plan.blocks_per_request:,} blocks of "
        f"{plan.bytes_per_block:,} bytes, {fixed} whatever its length."
    )


def _estimate(_: EngineLog, plan: CachePlan | None, pool: Pool | None) -> str:
    if plan is None or pool is None:
        return "The longest context one request would fit with."
    null = ", block 0 left out" if plan.rules.reserves_null_block else ""
    return f"The longest context whose blocks fit {pool.num_blocks:,}{null}; one request at a time."


_MEANINGS: dict[str, Meaning] = {
    "block_tokens": _block,
    "padding_percent": _padding,
    "padding_layers": _layers,
    "available_memory_gib": _memory,
    "num_blocks": _blocks,
    "cache_tokens": _tokens,
    "concurrency": _concurrency,
    "needed_gib": _needed,
    "estimated_context": _estimate,
}
