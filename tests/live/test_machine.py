"""One state machine over every backend beside a naive twin: the walk, and every refusal on the way.

HYPOTHESIS_PROFILE=deep walks more than 200,000 steps on each of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from modelbones.errors import (
    BadRowsError,
    BlobError,
    HandleError,
    UsageError,
)
from modelbones.live import Glm5NextDsaState, NumpyBackend
from tests.live.devices import (
    INFINITY,
    NAN,
    SMALL,
    SMALL_ROWS,
    Device,
    Row,
    arrays,
    joined,
)
from tests.live.walk import ROWS, CacheWalk, Call, blob_of

NO_COUNTS = st.sampled_from([-1, -SMALL_ROWS, True, False, 1.0, "1", None])


class CacheMachine(CacheWalk):
    """The walk, with every call that must be refused; that nothing changed, the invariants say."""

    @CacheWalk.live
    @rule(
        blob=CacheWalk.blobs, change=st.sampled_from(["short", "long", "width", "rows", "header", "too many", "text"])
    )
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

    @CacheWalk.live
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

    @CacheWalk.live
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

    @CacheWalk.live
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

    @CacheWalk.dead
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
