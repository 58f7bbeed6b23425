"""The `plan` report: what fits, in the engine's words and in plain ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.plan import Plan
from modelbones.plan.plan import RankPlan
from modelbones.report.blocks import Block, Facts, Lines, Table
from modelbones.units import format_exact

_BINDS = {
    "weights": "the card: the weights leave too little beside them",
    "context": "one sequence of this length does not fit",
    "state": "the memory for state",
}


def plan_json(model: str, result: Plan) -> dict[str, Any]:
    """The plan as JSON; bytes are integers, a rank's parts sum to its total."""
    request = result.request
    return {
        "schema": "modelbones/plan/1",
        "model": model,
        "model_type": request.skeleton.model_type,
        "engine": request.engine,
        "version": request.version,
        "context": request.context,
        "concurrency": request.concurrency,
        "parallel": {axis: getattr(request, axis) for axis in ("tp", "ep", "pp", "dp", "dcp")},
        "fits": result.fits,
        "binds": result.binds,
        "max_sequences": result.max_sequences,
        "max_context": result.max_context,
        "ranks": [_rank_json(rank) for rank in result.ranks],
        "capacity": dict(result.capacity),
        "alternatives": [
            {"change": each.change, "fits": each.fits, "max_sequences": each.max_sequences}
            for each in result.alternatives
        ],
    }


def _rank_json(rank: RankPlan) -> dict[str, Any]:
    return {
        "stage": rank.stage,
        "ranks": rank.ranks,
        "parts": dict(rank.parts),
        "total": rank.total,
        "available": rank.available,
    }


def plan_blocks(model: str, result: Plan) -> tuple[Block, ...]:
    """The plan for people."""
    request = result.request
    asked = f"{request.concurrency:,} x {request.context:,} tokens"
    answer = Facts(
        rows=(
            ("model", f"{model} ({request.skeleton.model_type})"),
            ("engine", _engine(result)),
            ("ranks", _parallel(result)),
            ("asked", f"{asked}: {'fits' if result.fits else 'does not fit'}"),
            ("most sequences", f"{result.max_sequences:,} of {request.context:,} tokens"),
            ("longest context", f"{result.max_context:,} tokens at {request.concurrency:,} at once"),
            ("what binds", _BINDS[result.binds]),
        )
    )
    ranks = tuple(_rank_table(rank, len(result.ranks)) for rank in result.ranks)
    return (answer, *ranks, *_capacity(result.capacity), *_alternatives(result))


def _engine(result: Plan) -> str:
    request = result.request
    rules = result.capacity.get("rules")
    if rules is not None and result.capacity.get("assumed"):
        return f"{request.engine} {request.version}, by the rules of {rules} (assumed)"
    return f"{request.engine} {request.version or ''}".strip()


def _parallel(result: Plan) -> str:
    request = result.request
    axes = ", ".join(
        f"{axis} {getattr(request, axis)}" for axis in ("tp", "ep", "pp", "dp", "dcp") if getattr(request, axis) > 1
    )
    card = "" if request.gpu is None else f" on {request.gpu_count} x {request.gpu.name}"
    return (axes or "one rank") + card


def _rank_table(rank: RankPlan, stages: int) -> Table:
    where = "each rank" if stages == 1 else f"each rank of stage {rank.stage}"
    rows = [(part.replace("_", " "), f"{nbytes:,}") for part, nbytes in rank.parts.items()]
    rows.append(("total", f"{rank.total:,}"))
    if rank.available is not None:
        rows.append(("the card allows", f"{rank.available:,}"))
    return Table(title=f"On {where} ({rank.ranks} alike, the widest)", columns=("part", ">bytes"), rows=tuple(rows))


def _capacity(capacity: Mapping[str, Any]) -> tuple[Block, ...]:
    if "groups" not in capacity:
        rows = tuple((name.replace("_", " "), _figure(value)) for name, value in capacity.items())
        return (Facts(title="In the engine's figures", rows=rows),) if rows else ()
    facts = Facts(
        title="In the engine's words",
        rows=(
            (
                "block",
                f"{capacity['block_tokens']:,} tokens, {format_exact(capacity['bytes_per_block'])} over all groups",
            ),
            ("blocks", f"{capacity['num_blocks']:,}, one of them the null block"),
            (
                "one request holds",
                f"{capacity['blocks_per_request']:,} blocks, {capacity['fixed_blocks_per_request']:,} of them "
                "before its first token",
            ),
            ("padding", f"{capacity['padding_percent']:.2f} % of a recurrent page"),
            (
                "it will log",
                f'"GPU KV cache size: {capacity["logged_tokens"]:,} tokens", concurrency '
                f"{capacity['logged_concurrency']:.2f}x: that is concurrency in token units, not a pool",
            ),
        ),
    )
    groups = Table(
        title="Groups that share its block ids",
        columns=("kind", ">layers", ">block tokens", ">bytes", ">blocks a request"),
        rows=tuple(
            (
                group["kind"],
                f"{group['layers']}",
                f"{group['block_tokens']:,}",
                f"{group['bytes']:,}",
                f"{group['blocks_per_request']:,}",
            )
            for group in capacity["groups"]
        ),
    )
    return (facts, groups, *_too_small(capacity.get("too_small")))


def _too_small(words: Mapping[str, int] | None) -> tuple[Block, ...]:
    if words is None:
        return ()
    line = (
        f"The engine will not start: one request needs {format_exact(words['needed_bytes'])}, "
        f"{format_exact(words['available_bytes'])} are there; it will suggest a length of {words['max_context']:,}."
    )
    return (Lines(lines=(line,)),)


def _figure(value: object) -> str:
    return format_exact(value) if isinstance(value, int) else str(value)


def _alternatives(result: Plan) -> tuple[Block, ...]:
    if not result.alternatives:
        return ()
    rows = tuple(
        (each.change, f"{each.max_sequences:,}", "fits" if each.fits else "does not fit")
        for each in result.alternatives
    )
    return (Table(title="What a change would give", columns=("with", ">sequences", ""), rows=rows),)
