"""`DsaSelectGeometry.plan`: its arithmetic and its refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.errors import ConfigError, SelectionError, UsageError
from modelbones.live import DsaSelectGeometry, Glm5NextDsaState
from tests.live.devices import PRESET, SMALL, Device


def test_a_long_sequence_of_the_preset() -> None:
    assert DsaSelectGeometry.plan(PRESET, seq=10_001, q_rows=3) == DsaSelectGeometry(
        seq=10_001,
        q_rows=3,
        index_head_dim=128,
        index_heads=32,
        index_kpool=4,
        n_pools=2_500,
        n_pools_full=2_501,
        select_k=512,
        out_width=2_051,
        topk_np2=2_048,
        topk_smem=32_768,
    )


@pytest.mark.parametrize(
    ("seq", "n_pools", "n_pools_full", "select_k", "topk_np2"),
    [
        (1, 0, 1, 0, 2),
        (3, 0, 1, 0, 2),
        (4, 1, 1, 1, 2),
        (5, 1, 2, 1, 2),
        (8, 2, 2, 2, 2),
        (12, 3, 3, 3, 4),
        (2_048, 512, 512, 512, 512),
        (2_052, 513, 513, 512, 1_024),
        (8_192, 2_048, 2_048, 512, 2_048),
        (8_196, 2_049, 2_049, 512, 2_048),
    ],
)
def test_pools_by_hand(seq: int, n_pools: int, n_pools_full: int, select_k: int, topk_np2: int) -> None:
    plan = DsaSelectGeometry.plan(PRESET, seq, 1)
    assert (plan.n_pools, plan.n_pools_full, plan.select_k) == (n_pools, n_pools_full, select_k)
    assert (plan.topk_np2, plan.topk_smem) == (topk_np2, 16 * topk_np2)


def test_fewer_tokens_than_a_pool_are_all_tail() -> None:
    plan = DsaSelectGeometry.plan(PRESET, 3, 1)
    assert (plan.select_k, plan.tail_start, plan.tail_rows) == (0, 0, 3)


def test_without_the_tail_the_selection_is_topk_wide() -> None:
    assert DsaSelectGeometry.plan(replace(PRESET, always_select_tail=False), 100, 1).out_width == 2_048
    assert DsaSelectGeometry.plan(replace(PRESET, index_kpool=1), 100, 1).out_width == 2_048


def test_the_longest_context_is_not_consulted() -> None:
    assert DsaSelectGeometry.plan(replace(PRESET, max_context=0), 1_000_000, 1).n_pools == 250_000


def test_no_query_and_no_token_are_refused() -> None:
    with pytest.raises(UsageError) as refused:
        DsaSelectGeometry.plan(PRESET, 5, 0)
    assert str(refused.value) == "q_rows: found 0; expected an integer, 1 or more; pass a Python int"
    with pytest.raises(UsageError) as refused:
        DsaSelectGeometry.plan(PRESET, 0, 1)
    assert str(refused.value) == "seq: found 0; expected an integer, 1 or more; pass a Python int"


def test_a_selection_wider_than_the_tile_is_refused() -> None:
    wide = replace(PRESET, index_topk=2_049 * 4)
    assert DsaSelectGeometry.plan(wide, 2_048 * 4 + 3, 1).select_k == 2_048
    with pytest.raises(SelectionError) as refused:
        DsaSelectGeometry.plan(wide, 2_049 * 4, 1)
    assert (refused.value.select_k, refused.value.tile, refused.value.seq) == (2_049, 2_048, 8_196)
    assert str(refused.value) == (
        "selection over 8196 tokens: 2049 pools to select; expected at most 2048, the selector's tile; "
        "lower index_topk or raise index_kpool"
    )


def test_a_config_that_does_not_validate_is_refused() -> None:
    with pytest.raises(ConfigError):
        DsaSelectGeometry.plan(replace(PRESET, index_kpool=0), 5, 1)


@given(seq=st.integers(1, 2**40), kpool=st.integers(1, 8), pools=st.integers(1, 2_048))
def test_a_plan_holds_together(seq: int, kpool: int, pools: int) -> None:
    plan = DsaSelectGeometry.plan(replace(PRESET, index_kpool=kpool, index_topk=pools * kpool), seq, 1)
    assert plan.n_pools * kpool + plan.tail_rows == seq
    assert plan.n_pools_full - plan.n_pools == (plan.tail_rows > 0)
    assert plan.select_k <= plan.topk_np2 <= 2_048
    assert plan.topk_np2 & (plan.topk_np2 - 1) == 0
    assert plan.topk_np2 >= min(plan.n_pools, 2_048)
    assert plan.select_k * kpool + plan.tail_rows <= plan.out_width


def test_a_state_plans_over_what_it_keeps(device: Device) -> None:
    state = Glm5NextDsaState.alloc(device.backend, SMALL)
    with pytest.raises(UsageError, match="seq: found 0"):
        state.geometry(SMALL, 1)
    state.advance(11)
    assert state.geometry(SMALL, 2) == DsaSelectGeometry.plan(SMALL, 11, 2)
    with pytest.raises(UsageError) as refused:
        state.geometry(PRESET, 1)
    assert str(refused.value) == (
        "geometry: found index_head_dim 128; expected 3, this cache's; pass the config it was allocated with"
    )
    state.free(device.backend)
