"""Public logs, recomputed: from memory, from a quoted block count, or their structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from modelbones.engines.vllm import CachePlan, Kind, plan_states
from modelbones.engines.vllm.figures import FIGURES
from modelbones.units import GIB, ceil_div
from tests.engines.vllm.log import Basis, Log
from tests.engines.vllm.logs import GAPS, LOGS
from tests.engines.vllm.models import MODELS


def _page(kind: Kind) -> Callable[[CachePlan], int]:
    def of(plan: CachePlan) -> int:
        return next(pages.page_bytes for group in plan.groups for pages in group.pages if pages.kind is kind)

    return of


def _lmcache_token_bytes(plan: CachePlan) -> int:
    """LMCache's bytes a token: a recurrent page is spread over the block in 2-byte elements."""
    attention = next(group for group in plan.groups if group.kind is Kind.LATENT)
    recurrent = sum(group.num_layers for group in plan.groups if group.kind is Kind.RECURRENT)
    spread = 2 * ceil_div(plan.alignment.state_page, 2 * plan.block_tokens)
    return attention.nbytes // plan.block_tokens + recurrent * spread


FIGURE: dict[str, Callable[[CachePlan], Any]] = {
    "block": lambda plan: plan.block_tokens,
    "padding": lambda plan: plan.padding_percent,
    "latent_page": _page(Kind.LATENT),
    "index_page": _page(Kind.INDEX),
    "bytes_per_block": lambda plan: plan.bytes_per_block,
    "request": lambda plan: plan.blocks_per_request,
    "tokens": lambda plan: plan.logged_tokens,
    "concurrency": lambda plan: round(plan.logged_concurrency, 2),
    "needs_gib": lambda plan: round(plan.request_bytes / GIB, 2),
    "groups": lambda plan: len(plan.groups),
    "layers": lambda plan: sum(group.num_layers for group in plan.groups),
    "group_blocks": lambda plan: tuple(group.blocks(plan.max_model_len) for group in plan.groups),
    "group_tokens": lambda plan: tuple(group.block_tokens for group in plan.groups),
    "padding_layers": lambda plan: tuple((pad.layers, pad.percent) for pad in plan.padding_layers),
    "lmcache_token_bytes": _lmcache_token_bytes,
}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.id}: {log.source}")
def test_a_public_log_is_recomputed(log: Log) -> None:
    model, settings = MODELS[log.model], log.settings
    plan = plan_states(model, settings, num_blocks=log.blocks or 1)
    assert {name: FIGURE[name](plan) for name in log.printed} == log.printed
    if log.memory_interval is not None:
        low, high = (plan_states(model, settings, memory=nbytes).num_blocks for nbytes in log.memory_interval)
        assert log.blocks is not None
        assert low <= log.blocks <= high


def test_every_row_rests_on_what_it_says() -> None:
    for log in LOGS:
        assert (log.memory_interval is not None) is (log.basis is Basis.MEMORY), log.id
        assert log.basis is Basis.STRUCTURE or log.blocks is not None, log.id


def test_open_figures_are_of_structure_rows_or_of_rows_not_reached() -> None:
    structure = {log.id for log in LOGS if log.basis is Basis.STRUCTURE}
    reached = {log.id for log in LOGS}
    assert {row for row in GAPS if row not in reached} == {"glm-22", "glm-23", "glm-24"}
    assert {row for row in GAPS if row in reached} <= structure


def test_the_counts_people_are_shown_are_those_of_the_rows() -> None:
    counts = Counter(log.basis for log in LOGS)
    shown = (FIGURES.from_memory, FIGURES.from_blocks, FIGURES.structure)
    assert shown == (counts[Basis.MEMORY], counts[Basis.BLOCKS], counts[Basis.STRUCTURE])
