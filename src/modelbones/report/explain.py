"""The `explain` report: each figure of a log, what it comes to, what is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modelbones.engines.vllm import SpecMethod
from modelbones.explain import Explanation, Figure, Held, HeldGroup
from modelbones.report.blocks import Block, Facts, Lines, Table
from modelbones.units import format_exact

_UNITS = {
    "block_tokens": " tokens",
    "padding_percent": " %",
    "available_memory_gib": " GiB",
    "cache_tokens": " tokens",
    "concurrency": "x",
    "needed_gib": " GiB",
    "estimated_context": " tokens",
}
_VERDICTS = {True: "matches", False: "differs", None: "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainReport:
    """What `explain` answers.

    Attributes:
        source: The log as it was named.
        model: The model it was recomputed for; None when there is none.
        explanation: The answer.
    """

    source: str
    model: str | None
    explanation: Explanation


def explain_json(report: ExplainReport) -> dict[str, Any]:
    """The report as JSON; bytes are integers, GiB as printed."""
    said = report.explanation
    rules = None if said.settings is None else said.settings.rules.version
    return {
        "schema": "modelbones/explain/1",
        "log": report.source,
        "starts": said.log.starts,
        "engine": {"name": "vllm", "version": said.log.version, "rules": rules},
        "model": report.model,
        "logged_model": said.log.model,
        "figures": [_figure_json(figure) for figure in said.figures],
        "held": None if said.held is None else _held_json(said.held),
        "needed": list(said.needed),
        "assumed": list(said.assumed),
        "refused": said.refused,
        "agrees": said.agrees,
    }


def _figure_json(figure: Figure) -> dict[str, Any]:
    names = ("name", "logged", "computed", "matches", "meaning", "reason")
    return {name: getattr(figure, name) for name in names}


def _held_json(held: Held) -> dict[str, Any]:
    names = (
        "context",
        "bytes_per_block",
        "num_blocks",
        "fixed_blocks",
        "fixed_bytes",
        "blocks_per_request",
        "request_bytes",
        "max_sequences",
        "even_context",
        "idle_step",
        "idle_blocks",
        "idle_tokens",
    )
    return {
        **{name: getattr(held, name) for name in names},
        "binds": held.binds.kind.value,
        "groups": [
            {
                "kind": group.kind.value,
                "groups": group.groups,
                "block_tokens": group.block_tokens,
                "blocks": group.blocks,
                "idle_blocks": group.idle_blocks,
            }
            for group in held.groups
        ],
    }


def explain_blocks(report: ExplainReport) -> tuple[Block, ...]:
    """The report for people."""
    said = report.explanation
    blocks: list[Block] = [_head(report)]
    if said.needed:
        blocks.append(Lines(title="Needed to recompute the figures", lines=said.needed))
    if said.refused:
        blocks.append(Lines(title="Not recomputed", lines=(said.refused,)))
    if said.figures:
        blocks += [_figures(said), _meanings(said)]
    if said.held is not None:
        blocks.append(_held(said.held, said.log.cache_tokens))
    return tuple(blocks)


def _head(report: ExplainReport) -> Facts:
    said = report.explanation
    rows = [("log", report.source), ("engine", _engine(said))]
    model = report.model or said.log.model or "not named"
    named = f" (in the log: {said.log.model})" if said.log.model not in (None, model) else ""
    rows.append(("model", model + named))
    if said.settings is not None:
        rows.append(("start", _start(said)))
    if said.assumed:
        rows.append(("assumed", f"{'; '.join(said.assumed)}: the log does not say"))
    rows.append(("verdict", _verdict(said)))
    return Facts(rows=tuple(rows))


def _engine(said: Explanation) -> str:
    version = said.log.version or "of no named version"
    starts = f"; the last of {said.log.starts} starts" if said.log.starts > 1 else ""
    rules = said.settings.rules.version if said.settings is not None else None
    by = "" if rules is None or rules == version.split("+")[0] else f", by the rules of {rules}"
    return f"vLLM {version}{by}{starts}"


def _start(said: Explanation) -> str:
    settings = said.settings
    assert settings is not None, "asked for only with settings"
    parts = [f"tp {settings.tp}", f"kv dtype {settings.kv_dtype.value}", f"context {settings.max_model_len:,}"]
    if settings.dcp > 1:
        parts.append(f"dcp {settings.dcp}")
    if settings.spec_method is not SpecMethod.NONE:
        parts.append(f"{settings.num_spec} tokens drafted ({settings.spec_method.value})")
    parts.append(f"prefix caching {'on' if settings.prefix_caching else 'off'}")
    return ", ".join(parts)


def _verdict(said: Explanation) -> str:
    compared = [figure for figure in said.figures if figure.matches is not None]
    differing = [figure for figure in compared if not figure.matches]
    if not compared:
        return "nothing to compare"
    if differing:
        return f"{len(differing)} of {len(compared)} figures differ"
    return f"all {len(compared)} figures match" if len(compared) > 1 else "the one figure matches"


def _figures(said: Explanation) -> Table:
    rows = tuple(
        (
            figure.label,
            _shown(figure.name, figure.logged),
            "-" if figure.computed is None else _shown(figure.name, figure.computed),
            _VERDICTS[figure.matches],
        )
        for figure in said.figures
    )
    return Table(title="Figures", columns=("figure", ">logged", ">computed", "verdict"), rows=rows)


def _shown(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return text + _UNITS.get(name, "")


def _meanings(said: Explanation) -> Lines:
    lines = []
    for figure in said.figures:
        why = f" Why it differs: {figure.reason}." if figure.matches is False else ""
        lines.append(f"{figure.label}: {figure.meaning}{why}")
    return Lines(title="What they say", lines=tuple(lines))


def _held(held: Held, logged: int | None) -> Facts:
    rows = [
        ("one block id", format_exact(held.bytes_per_block)),
        ("before its first token", _fixed(held)),
        (f"at {held.context:,} tokens", f"{held.blocks_per_request:,} blocks, {format_exact(held.request_bytes)}"),
        ("of these", ", ".join(_share(group) for group in held.groups)),
        ("what binds", _binds(held)),
    ]
    if held.num_blocks is not None:
        usable = max(held.num_blocks - 1, 0)
        rows.append(("at once", f"{held.max_sequences:,} such requests in {usable:,} blocks"))
    rows.append(("idle cache", _idle(held, logged)))
    return Facts(title="What a request holds, on each rank", rows=tuple(rows))


def _fixed(held: Held) -> str:
    if not held.fixed_blocks:
        return "no block: everything grows with the context"
    blocks = "1 block" if held.fixed_blocks == 1 else f"{held.fixed_blocks:,} blocks"
    return f"{blocks}, {format_exact(held.fixed_bytes)}, whatever its length"


def _share(group: HeldGroup) -> str:
    return f"{group.blocks:,} {_kind(group)}"


def _kind(group: HeldGroup) -> str:
    return group.kind.value if group.groups == 1 else f"{group.kind.value} ({group.groups} groups)"


def _binds(held: Held) -> str:
    binding = held.binds
    said = f"{_kind(binding)}: {binding.blocks:,} of {held.blocks_per_request:,} blocks"
    if not held.even_context:
        return said
    return f"{said}; up to {min(held.even_context, held.context):,} tokens the fixed blocks are at least half"


def _idle(held: Held, logged: int | None) -> str:
    if not held.idle_step:
        return "none: no prefix is kept without prefix caching"
    kept = ", ".join(f"{group.idle_blocks:,} {group.kind.value}" for group in held.groups if group.idle_blocks)
    said = f"{held.idle_blocks:,} block ids for each {held.idle_step:,} tokens ({kept})"
    if held.idle_tokens is None:
        return said
    beside = f", not {logged:,}" if logged is not None and held.idle_tokens < logged // 2 else ""
    return f"{said}: the pool keeps {held.idle_tokens:,} tokens{beside}, with a state at every step"
