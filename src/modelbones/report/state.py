"""The `state` report: what one sequence costs, term by term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelbones.budget import StateBudget, Term
from modelbones.buffers import Grows, Home
from modelbones.report.blocks import Block, Facts, Lines, Table
from modelbones.report.words import buffer_json, growth_text, resolved, shape_text
from modelbones.reserve import (
    PerSequenceState,
    Uncounted,
    device_parts,
    kept_outside_pages,
    reserve,
    uncounted,
)
from modelbones.skeleton import Skeleton
from modelbones.units import format_exact

LAYOUT = "metrale layout"
_SIX = (
    "kda_recurrent",
    "kda_conv",
    "dsa_kv_per_token",
    "dsa_indexer_per_token",
    "mhc_highway_per_token",
    "moe_routing_per_token",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """One sequence in an engine's own layout.

    Attributes:
        engine: The engine.
        version: Its version, where it has any.
        words: Its own figures, "bytes_per_sequence" among them.
    """

    engine: str
    version: str | None
    words: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """Everything `state` answers for one model and one set of flags.

    Attributes:
        model: The model as it was named.
        revision: The commit of the Hub its config is at; None for a model on disk.
        skeleton: The model.
        context: Tokens of the sequence.
        num_spec: Speculative tokens in flight.
        spec_on: Whether the MTP layer drafts them.
        concurrency: Sequences at once.
        ranks: Ranks that share the state by the metrale rule; None when not asked.
        engine: The same sequence in an engine's own layout; None when not asked.
    """

    model: str
    skeleton: Skeleton
    context: int
    num_spec: int
    spec_on: bool
    concurrency: int
    ranks: int | None
    revision: str | None = None
    engine: EngineState | None = None

    @property
    def budget(self) -> StateBudget:
        """The budget of one sequence."""
        return self.skeleton.budget(self.num_spec)

    @property
    def reserve(self) -> PerSequenceState:
        """The reserve of one sequence."""
        return reserve(self.skeleton, self.context, spec_on=self.spec_on)

    @property
    def device(self) -> dict[str, int]:
        """Device bytes of one sequence by part."""
        return device_parts(self.skeleton, self.context, num_spec=self.num_spec, spec_on=self.spec_on)

    @property
    def uncounted(self) -> tuple[Uncounted, ...]:
        """What no sum counts."""
        return uncounted(self.skeleton, num_spec=self.num_spec, spec_on=self.spec_on)

    @property
    def reasons(self) -> str:
        """Why prefix caching and swapping of KV blocks alone are not safe; empty when they are."""
        outside = kept_outside_pages(self.skeleton)
        return f"{', '.join(outside)} live outside the KV blocks" if outside else ""


def state_json(report: StateReport) -> dict[str, Any]:
    """The report as JSON; bytes are integers."""
    kept = report.reserve
    data: dict[str, Any] = {
        "schema": "modelbones/state/1",
        "model": report.model,
        "revision": report.revision,
        "model_type": report.skeleton.model_type,
        "layout": LAYOUT,
        "context": report.context,
        "num_spec": report.num_spec,
        "speculative": report.spec_on,
        "concurrency": report.concurrency,
        "budget": _budget_json(report.budget, report.context),
        "reserve": {
            "target_layers": kept.target_layers,
            "proposer": kept.proposer,
            "total": kept.total(),
            "for_batch": kept.for_batch(report.concurrency),
        },
        "device": {
            "total": sum(report.device.values()),
            "parts": report.device,
            "for_batch": sum(report.device.values()) * report.concurrency,
        },
        "uncounted": [
            {"name": item.name, "bytes": item.nbytes, "per": item.per, "reason": item.reason}
            for item in report.uncounted
        ],
        "prefix_cache_safe": not report.reasons,
        "swap_safe": not report.reasons,
        "unsafe_reason": report.reasons,
    }
    if report.ranks is not None:
        data["ranks"] = report.ranks
        data["per_rank"] = _budget_json(report.budget.per_rank(report.ranks), report.context)
    if report.engine is not None:
        data["engine"] = {"engine": report.engine.engine, "version": report.engine.version, **report.engine.words}
    return data


def _budget_json(budget: StateBudget, context: int) -> dict[str, Any]:
    return {
        **{name: getattr(budget, name) for name in _SIX},
        "fixed": budget.fixed(),
        "per_token": budget.per_token(),
        "for_sequence": budget.for_sequence(context),
        "peak": budget.peak(context),
        "terms": [_term_json(term, budget, context) for term in budget.terms],
    }


def _term_json(term: Term, budget: StateBudget, context: int) -> dict[str, Any]:
    return {
        "name": term.name,
        "counted": term.is_counted,
        "home": term.home.value,
        "layers": term.num_layers,
        "fixed": term.row_bytes(Grows.FIXED, ranks=budget.ranks),
        "per_token": term.row_bytes(Grows.TOKEN, ranks=budget.ranks),
        "bytes": term.nbytes(tokens=context, ranks=budget.ranks),
        "buffers": [buffer_json(buffer) for buffer, _ in term.buffers],
    }


def state_blocks(report: StateReport) -> tuple[Block, ...]:
    """The report for people."""
    budget = report.budget
    blocks: list[Block] = [
        Facts(
            rows=(
                ("model", f"{report.model} ({report.skeleton.model_type})"),
                *resolved(report.revision),
                ("sequence", f"{report.context:,} tokens{_speculation(report)}"),
                ("layout", f"{LAYOUT}: the seeds' engine; other engines pad, page and pool differently"),
            )
        ),
        _terms(budget, report.context),
        Facts(
            title="Budget of one sequence (text stack)",
            rows=(
                ("fixed", format_exact(budget.fixed())),
                ("per token", format_exact(budget.per_token())),
                (f"at {report.context:,}", format_exact(budget.for_sequence(report.context))),
                *_peak(budget, report.context),
            ),
        ),
        _reserve(report),
        _device(report),
    ]
    if report.ranks is not None:
        blocks.append(_per_rank(report, report.ranks))
    if report.engine is not None:
        blocks.append(_engine(report.engine))
    if report.uncounted:
        blocks.append(_left_out(report))
    blocks.append(_safety(report))
    return tuple(blocks)


def _speculation(report: StateReport) -> str:
    if report.spec_on:
        return f", {report.num_spec} drafted by the MTP layer"
    return f", {report.num_spec} speculative in flight" if report.num_spec else ""


def _peak(budget: StateBudget, context: int) -> tuple[tuple[str, str], ...]:
    peak = budget.peak(context)
    return (("peak on the way", format_exact(peak)),) if peak != budget.for_sequence(context) else ()


def _terms(budget: StateBudget, context: int) -> Table:
    rows = tuple(
        (
            buffer.name,
            f"{layers}",
            f"{buffer.dtype.value} {shape_text(buffer.shape)}",
            growth_text(buffer.per),
            buffer.home.value,
            f"{buffer.nbytes(tokens=context, ranks=budget.ranks) * layers:,}",
        )
        for term in budget.counted
        for buffer, layers in term.buffers
    )
    columns = ("buffer", ">layers", "row", "one row", "home", ">bytes")
    return Table(title="State kept between steps", columns=columns, rows=rows)


def _reserve(report: StateReport) -> Facts:
    kept = report.reserve
    batch = f"for {report.concurrency} sequences"
    rows = [
        *_pooled_rows(report),
        ("indexer caches", format_exact(kept.target_layers)),
        ("draft proposer", format_exact(kept.proposer)),
        ("total", format_exact(kept.total())),
    ]
    if report.concurrency > 1:
        rows.append((batch, format_exact(kept.for_batch(report.concurrency))))
    return Facts(title="Reserve: what one sequence owns, in whole pools", rows=tuple(rows))


def _pooled_rows(report: StateReport) -> list[tuple[str, str]]:
    """The rows that are reserved, where whole pools make them fewer than the tokens the budget counts."""
    owned = (b for layer in report.skeleton.layers for b in layer.buffers if b.home is Home.OWNED)
    rows = {buffer.per.reserved_rows(report.context) for buffer in owned} - {report.context}
    return [("rows of a cache", f"{count:,}; the budget counts {report.context:,} tokens") for count in sorted(rows)]


def _device(report: StateReport) -> Facts:
    parts = report.device
    rows = [(name, format_exact(nbytes)) for name, nbytes in parts.items()]
    rows.append(("device bytes for one sequence", format_exact(sum(parts.values()))))
    if report.concurrency > 1:
        rows.append((f"for {report.concurrency} sequences", format_exact(sum(parts.values()) * report.concurrency)))
    return Facts(title="On the device (parts sum, nothing is counted twice)", rows=tuple(rows))


def _per_rank(report: StateReport, ranks: int) -> Facts:
    share = report.budget.per_rank(ranks)
    rows = (
        ("fixed", format_exact(share.fixed())),
        ("per token", format_exact(share.per_token())),
        (f"at {report.context:,}", format_exact(share.for_sequence(report.context))),
    )
    return Facts(title=f"Budget on the widest of {ranks} ranks (metrale rule: heads and latent divide)", rows=rows)


def _engine(state: EngineState) -> Facts:
    name = f"{state.engine} {state.version or ''}".strip()
    rows = tuple(
        (key.replace("_", " "), format_exact(value) if "bytes" in key else str(value))
        for key, value in state.words.items()
        if not isinstance(value, list)
    )
    return Facts(title=f"The same sequence in {name}'s own layout, one rank", rows=rows)


def _left_out(report: StateReport) -> Table:
    rows = tuple((item.name, f"{item.nbytes:,}", item.per, item.reason.split(":")[0]) for item in report.uncounted)
    return Table(title="In neither sum", columns=("what", ">bytes", "per", "why"), rows=rows)


def _safety(report: StateReport) -> Lines:
    if not report.reasons:
        return Lines(lines=("Prefix caching and swapping of KV blocks carry a sequence whole.",))
    return Lines(lines=(f"Not prefix-cache safe and not swap safe by KV blocks alone: {report.reasons}.",))
