"""The cursor: where it may go, and the exact words of its refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from modelbones.errors import CacheFullError, RowsMissingError, UsageError
from modelbones.live import Glm5NextDsaState
from tests.live.devices import (
    SMALL,
    Device,
    handles,
)


def test_row_offsets_are_bytes_up_to_the_end(state: Glm5NextDsaState) -> None:
    assert [state.row_offset(pos) for pos in (0, 1, 5, 16)] == [0, 6, 30, 96]
    with pytest.raises(CacheFullError):
        state.row_offset(17)


def test_a_write_past_the_end_names_the_rows_and_the_flag(state: Glm5NextDsaState) -> None:
    state.advance(14)
    state.ensure_room(2)
    with pytest.raises(CacheFullError) as refused:
        state.advance(3)
    assert str(refused.value) == (
        "indexer cache: row 17 is past its 16 reserved rows; the cache never grows; raise --max-seq-len to at least 20"
    )
    assert (refused.value.end, refused.value.capacity, refused.value.max_seq_len) == (17, 16, 20)
    assert state.len() == 14


def test_the_flag_named_really_is_enough(device: Device, state: Glm5NextDsaState) -> None:
    with pytest.raises(CacheFullError) as refused:
        state.ensure_room_through(17)
    longer = Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=refused.value.max_seq_len))
    longer.ensure_room_through(17)
    shorter = Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=refused.value.max_seq_len - 1))
    with pytest.raises(CacheFullError):
        shorter.ensure_room_through(17)


def test_room_through_an_end_is_absolute(state: Glm5NextDsaState) -> None:
    state.advance(16)
    state.ensure_room_through(16)
    with pytest.raises(CacheFullError):
        state.ensure_room(1)


def test_a_rewind_only_shrinks(state: Glm5NextDsaState) -> None:
    state.advance(9)
    state.rewind_to(9)
    state.rewind_to(7)
    with pytest.raises(RowsMissingError) as refused:
        state.rewind_to(8)
    assert str(refused.value) == (
        "indexer cache: 7 rows held; the rewind goes to row 8, so 1 row is MISSING; "
        "a rewind only shrinks; find where the caller lost the sequence position"
    )
    assert state.len() == 7


def test_a_sync_ahead_rewinds_and_advances(state: Glm5NextDsaState) -> None:
    state.advance(9)
    state.sync_to(6, 2)
    assert state.len() == 8
    state.sync_to(8, 1)
    assert state.len() == 9


def test_a_sync_behind_says_how_many_rows_are_missing(state: Glm5NextDsaState) -> None:
    state.advance(4)
    with pytest.raises(RowsMissingError) as refused:
        state.sync_to(6, 1)
    assert str(refused.value) == (
        "indexer cache: 4 rows held; the replayed step starts at row 6, so 2 rows are MISSING; "
        "replay or prefill the missing rows first"
    )
    assert (refused.value.held, refused.value.wanted, refused.value.missing) == (4, 6, 2)
    assert state.len() == 4


def test_a_sync_that_cannot_advance_leaves_the_cursor_ahead(state: Glm5NextDsaState) -> None:
    """The seed rewinds first and then fails, which loses rows that were still good."""
    state.advance(16)
    with pytest.raises(CacheFullError):
        state.sync_to(14, 3)
    assert state.len() == 16


NUMBERS: list[tuple[str, Callable[[Glm5NextDsaState, Any], Any]]] = [
    ("pos", lambda state, n: state.row_offset(n)),
    ("n", lambda state, n: state.ensure_room(n)),
    ("end", lambda state, n: state.ensure_room_through(n)),
    ("n", lambda state, n: state.advance(n)),
    ("n", lambda state, n: state.rewind_to(n)),
    ("seq_len", lambda state, n: state.sync_to(n, 0)),
    ("k", lambda state, n: state.sync_to(0, n)),
    ("length", lambda state, n: Glm5NextDsaState.borrowed(SMALL, *handles(state), length=n)),
]


@pytest.mark.parametrize(("name", "call"), NUMBERS)
@pytest.mark.parametrize("n", [-1, True, 1.0, "1", None])
def test_what_is_no_count_is_refused(
    state: Glm5NextDsaState, name: str, call: Callable[[Glm5NextDsaState, Any], Any], n: Any
) -> None:
    state.advance(3)
    with pytest.raises(UsageError, match=rf"^{name}: found .*; expected an integer, 0 or more; pass a Python int"):
        call(state, n)
    assert state.len() == 3
