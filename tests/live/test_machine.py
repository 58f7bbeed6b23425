"""One state machine over every backend, beside a naive list of rows.

Every byte of the buffers is known at every step: rows below `len` are the twin's, all others
are NaN, so a call that reads, keeps or touches one too many shows. HYPOTHESIS_PROFILE=deep
walks 250,000 steps on each.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from modelbones.errors import (
    BadRowsError,
    BlobError,
    CacheFullError,
    HandleError,
    LiveStateError,
    RowsMissingError,
    UsageError,
)
from modelbones.live import Glm5NextDsaState, NumpyBackend
from tests.live.devices import (
    INFINITY,
    NAN,
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
    poison,
    random_rows,
    raw,
)

ROWS = st.builds(lambda seed, n: random_rows(Random(seed), n), st.integers(0, 2**32), st.integers(0, 7))
POSITIONS = st.integers(0, SMALL_ROWS + 4)
NO_COUNTS = st.sampled_from([-1, -SMALL_ROWS, True, False, 1.0, "1", None])

Call = Callable[[Glm5NextDsaState, Device], Any]


def blob_of(rows: list[Row]) -> bytes:
    return len(rows).to_bytes(8, "little") + (3).to_bytes(8, "little") + b"".join(joined(rows))


class CacheMachine(RuleBasedStateMachine):
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

    def forget_past_the_end(self) -> None:
        for state, device in zip(self.states, self.devices, strict=True):
            poison(device, state)

    def move(self, call: Call, kept: list[Row], error: type[Exception] | None) -> None:
        """A call that leaves `kept`, or is refused with `error`."""
        if error is not None:
            self.refused(call, error)
            return
        self.each(call)
        self.twin = kept
        self.forget_past_the_end()

    live = precondition(lambda self: not self.freed)
    dead = precondition(lambda self: self.freed)

    @dead
    @rule()
    def allocate(self) -> None:
        self.states = [Glm5NextDsaState.alloc(device.backend, SMALL) for device in self.devices]
        self.twin = []
        self.freed = False
        self.forget_past_the_end()

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
        error: type[LiveStateError] | None = RowsMissingError if seq_len > len(self.twin) else None
        if end > SMALL_ROWS:
            error = LiveStateError
            self.refused(lambda state, _: state.ensure_room_through(end), CacheFullError)
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
    @rule(blob=blobs, change=st.sampled_from(["short", "long", "width", "rows", "header", "too many", "text"]))
    def restore_what_does_not_fit(self, blob: bytes, change: str) -> None:
        rows = int.from_bytes(blob[:8], "little")
        bad: Any = {
            "short": blob[:-1],
            "long": blob + b"\0",
            "width": blob[:8] + (4).to_bytes(8, "little") + blob[16:],
            "rows": (rows + 1).to_bytes(8, "little") + blob[8:],
            "header": blob[:15],
            "too many": (17).to_bytes(8, "little") + (3).to_bytes(8, "little") + bytes(17 * 13),
            "text": "blob",
        }[change]
        self.refused(lambda state, device: state.restore_blob(bad, device.backend), BlobError)

    @live
    @rule(
        rows=ROWS.filter(bool),
        part=st.integers(0, 2),
        how=st.sampled_from(["float16", "one row less", "flat", "list", "nan", "infinity"]),
        place=st.integers(0, 20),
    )
    def append_bad_rows(self, rows: list[Row], part: int, how: str, place: int) -> None:
        if len(self.twin) + len(rows) > SMALL_ROWS or (part == 2 and how in ("flat", "nan", "infinity")):
            return
        width = 1 if part == 2 else 3
        data = joined(rows)[part]
        value = {"nan": NAN, "infinity": INFINITY}.get(how, b"")
        spot = place % (len(rows) * width) * 2

        def offer(state: Glm5NextDsaState, device: Device) -> None:
            offered: list[Any] = list(arrays(device, rows))
            spoilt: dict[str, Callable[[], Any]] = {
                "float16": lambda: device.array(bytes(2 * len(rows) * width), (len(rows), width), "float16"),
                "one row less": lambda: offered[part][:-1],
                "flat": lambda: device.array(data, (len(rows) * width,), "bfloat16"),
                "list": lambda: [[0.0] * width] * len(rows),
            }
            nonfinite = data[:spot] + value + data[spot + 2 :]
            make = spoilt.get(how, lambda: device.array(nonfinite, (len(rows), width), "bfloat16"))
            offered[part] = make()
            state.append(device.backend, *offered)

        self.refused(offer, BadRowsError)

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
    @rule(value=NO_COUNTS)
    def pass_no_count(self, value: Any) -> None:
        calls: list[Call] = [
            lambda state, _: state.row_offset(value),
            lambda state, _: state.ensure_room(value),
            lambda state, _: state.ensure_room_through(value),
            lambda state, _: state.advance(value),
            lambda state, _: state.rewind_to(value),
            lambda state, _: state.sync_to(value, 0),
            lambda state, _: state.sync_to(0, value),
            lambda state, device: state.rows(device.backend, value, 0),
            lambda state, device: state.rows(device.backend, 0, value),
        ]
        for call in calls:
            self.refused(call, UsageError)

    @live
    @rule(rows=ROWS)
    def use_another_backend(self, rows: list[Row]) -> None:
        other = NumpyBackend()
        calls: list[Call] = [
            lambda state, device: state.append(other, *arrays(device, rows)),
            lambda state, _: state.rows(other, 0, 0),
            lambda state, _: state.snapshot_blob(other),
            lambda state, _: state.restore_blob(blob_of([]), other),
            lambda state, _: state.free(other),
        ]
        for call in calls:
            self.refused(call, HandleError)

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
        self.forget_past_the_end()

    @live
    @rule()
    def free(self) -> None:
        self.each(lambda state, device: state.free(device.backend))
        self.freed = True
        self.twin = []

    @dead
    @rule()
    def use_after_free(self) -> None:
        calls: list[Call] = [
            lambda state, _: state.ensure_room(0),
            lambda state, _: state.ensure_room_through(0),
            lambda state, _: state.advance(0),
            lambda state, _: state.rewind_to(0),
            lambda state, _: state.sync_to(0, 0),
            lambda state, _: state.geometry(SMALL, 1),
            lambda state, device: state.append(device.backend, *arrays(device, [])),
            lambda state, device: state.rows(device.backend, 0, 0),
            lambda state, device: state.snapshot_blob(device.backend),
            lambda state, device: state.restore_blob(blob_of([]), device.backend),
        ]
        for call in calls:
            self.refused(call, HandleError)
        self.each(lambda state, device: state.free(device.backend))

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


class BothMachine(CacheMachine):
    """Numpy and torch in step."""

    KINDS = ("numpy", "torch")


TestNumpyCache = CacheMachine.TestCase


@pytest.mark.oracle
class TestBothCaches(BothMachine.TestCase):
    """The same walk on both backends at once."""

    @pytest.fixture(autouse=True)
    def _needs_torch(self) -> None:
        pytest.importorskip("torch")
