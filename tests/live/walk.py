"""A cache on each backend, walked in step beside a naive list of rows.

Every byte of the buffers is known at every step: rows below `len` are the twin's, all others
are NaN, so a call that reads, keeps or touches one too many shows.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from modelbones.errors import (
    CacheFullError,
    LiveStateError,
    RowsMissingError,
    UsageError,
)
from modelbones.live import Glm5NextDsaState
from tests.live.devices import (
    POISON,
    SMALL,
    SMALL_BYTES,
    SMALL_ROWS,
    Device,
    Row,
    arrays,
    device_of,
    image,
    joined,
    overwrite,
    random_rows,
    raw,
)

ROWS = st.builds(lambda seed, n: random_rows(Random(seed), n), st.integers(0, 2**32), st.integers(0, 7))
POSITIONS = st.integers(0, SMALL_ROWS + 4)

Call = Callable[[Glm5NextDsaState, Device], Any]


def blob_of(rows: list[Row]) -> bytes:
    return len(rows).to_bytes(8, "little") + (3).to_bytes(8, "little") + b"".join(joined(rows))


class CacheWalk(RuleBasedStateMachine):
    """A cache of 16 rows on each device of `KINDS`, all walked in step."""

    KINDS: tuple[str, ...] = ("numpy",)
    blobs = Bundle("blobs")

    def __init__(self) -> None:
        super().__init__()
        self.devices = [device_of(kind) for kind in self.KINDS]
        self.twin: list[Row] = []
        self.freed = True
        self.states: list[Glm5NextDsaState] = []
        self.allocate()

    def each(self, call: Call) -> list[Any]:
        return [call(state, device) for state, device in zip(self.states, self.devices, strict=True)]

    def refused(self, call: Call, error: type[Exception]) -> None:
        """Each refuses; that nothing changed, the invariants say."""

        def refuse(state: Glm5NextDsaState, device: Device) -> None:
            with pytest.raises(error):
                call(state, device)

        self.each(refuse)

    def spoil(self, start: int, stop: int) -> None:
        """NaN in rows the cache should have forgotten; all other bytes are left to be checked."""
        self.each(lambda state, device: overwrite(device, state, start, [POISON] * (stop - start)))

    def move(self, call: Call, kept: list[Row], error: type[Exception] | None) -> None:
        """A call that leaves `kept`, or is refused with `error`."""
        if error is not None:
            self.refused(call, error)
            return
        self.each(call)
        self.spoil(len(kept), len(self.twin))
        self.twin = kept

    live = precondition(lambda self: not self.freed)
    dead = precondition(lambda self: self.freed)

    @dead
    @rule()
    def allocate(self) -> None:
        self.states = [Glm5NextDsaState.alloc(device.backend, SMALL) for device in self.devices]
        self.twin = []
        self.freed = False
        self.spoil(0, SMALL_ROWS)

    @live
    @rule(rows=ROWS)
    def append(self, rows: list[Row]) -> None:
        full = len(self.twin) + len(rows) > SMALL_ROWS
        call: Call = lambda state, device: state.append(device.backend, *arrays(device, rows))  # noqa: E731
        self.move(call, self.twin + rows, CacheFullError if full else None)

    @live
    @rule(rows=ROWS)
    def write_and_advance(self, rows: list[Row]) -> None:
        if len(self.twin) + len(rows) > SMALL_ROWS:
            self.refused(lambda state, _: state.ensure_room(len(rows)), CacheFullError)
            self.refused(lambda state, _: state.advance(len(rows)), CacheFullError)
            return
        self.each(lambda state, _: state.ensure_room(len(rows)))
        self.each(lambda state, device: overwrite(device, state, state.len(), rows))
        self.move(lambda state, _: state.advance(len(rows)), self.twin + rows, None)

    @live
    @rule(n=POSITIONS)
    def rewind(self, n: int) -> None:
        error = RowsMissingError if n > len(self.twin) else None
        self.move(lambda state, _: state.rewind_to(n), self.twin[:n], error)

    @live
    @rule(seq_len=POSITIONS, rows=ROWS)
    def replay(self, seq_len: int, rows: list[Row]) -> None:
        end = seq_len + len(rows)
        error: type[LiveStateError] | None = None
        if end > SMALL_ROWS:
            error = CacheFullError
            self.refused(lambda state, _: state.ensure_room_through(end), CacheFullError)
        if seq_len > len(self.twin):
            error = RowsMissingError
        if error is None:
            self.each(lambda state, _: state.ensure_room_through(end))
            self.each(lambda state, device: overwrite(device, state, seq_len, rows))
        self.move(lambda state, _: state.sync_to(seq_len, len(rows)), self.twin[:seq_len] + rows, error)

    @live
    @rule(target=blobs)
    def snapshot(self) -> bytes:
        blobs = set(self.each(lambda state, device: state.snapshot_blob(device.backend)))
        assert blobs == {blob_of(self.twin)}
        return blob_of(self.twin)

    @live
    @rule(blob=blobs)
    def restore(self, blob: bytes) -> None:
        length = int.from_bytes(blob[:8], "little")
        keys, gates, valid = blob[16 : 16 + 6 * length], blob[16 + 6 * length : 16 + 12 * length], blob[-length:]
        kept = [(keys[6 * i : 6 * i + 6], gates[6 * i : 6 * i + 6], valid[i : i + 1]) for i in range(length)]
        self.move(lambda state, device: state.restore_blob(blob, device.backend), kept, None)

    @live
    @rule(start=POSITIONS, stop=POSITIONS)
    def read(self, start: int, stop: int) -> None:
        if start > stop:
            self.refused(lambda state, device: state.rows(device.backend, start, stop), UsageError)
        elif stop > len(self.twin):
            self.refused(lambda state, device: state.rows(device.backend, start, stop), RowsMissingError)
        else:
            read = self.each(lambda state, device: raw(device, state.rows(device.backend, start, stop)))
            assert set(read) == {joined(self.twin[start:stop])}

    @live
    @rule(q_rows=st.integers(0, 3))
    def select(self, q_rows: int) -> None:
        if not (q_rows and self.twin):
            self.refused(lambda state, _: state.geometry(SMALL, q_rows), UsageError)
            return
        for plan in self.each(lambda state, _: state.geometry(SMALL, q_rows)):
            assert plan.tail_rows == len(self.twin) % 4
            assert plan.n_pools == len(self.twin) // 4
            assert plan.select_k == min(2, plan.n_pools)

    @live
    @rule(rows=ROWS)
    def borrow(self, rows: list[Row]) -> None:
        """A view's cursor is its own; freeing it frees nothing."""

        def lend(state: Glm5NextDsaState, device: Device) -> None:
            view = Glm5NextDsaState.borrowed(SMALL, state.k_normed, state.gate, state.valid, length=state.len())
            if len(rows) <= SMALL_ROWS - len(self.twin):
                view.append(device.backend, *arrays(device, rows))
                assert raw(device, view.rows(device.backend, 0, view.len())) == joined(self.twin + rows)
            view.free(device.backend)
            view.free(device.backend)
            assert view.k_normed is None

        self.each(lend)
        self.spoil(len(self.twin), min(len(self.twin) + len(rows), SMALL_ROWS))

    @live
    @rule()
    def free(self) -> None:
        self.each(lambda state, device: state.free(device.backend))
        self.freed = True
        self.twin = []

    @invariant()
    def the_cursor_is_the_twins(self) -> None:
        for state in self.states:
            assert state.len() == len(self.twin)
            assert state.is_empty() == (not self.twin)
            assert state.capacity() == SMALL_ROWS

    @invariant()
    def every_byte_is_the_twins_or_poison(self) -> None:
        for state, device in zip(self.states, self.devices, strict=True):
            if self.freed:
                assert (state.k_normed, state.gate, state.valid) == (None, None, None)
            else:
                assert image(device, state) == joined(self.twin + [POISON] * (SMALL_ROWS - len(self.twin)))

    @invariant()
    def the_ledger_is_exact(self) -> None:
        for device in self.devices:
            held = (device.backend.live_allocs(), device.backend.live_bytes())
            assert held == ((0, 0) if self.freed else (3, SMALL_BYTES))

    def teardown(self) -> None:
        for state, device in zip(self.states, self.devices, strict=True):
            state.free(device.backend)
            assert device.backend.live_bytes() == 0
