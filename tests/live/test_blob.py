"""Snapshots: their bytes, and every blob that is refused before the first copy."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from modelbones.errors import BlobError, HandleError
from modelbones.live import Glm5NextDsaState, NumpyBackend
from modelbones.live.backend import Handle
from tests.live.devices import PRESET, SMALL, Device, arrays, image, joined, overwrite, random_rows, raw

ROWS = random_rows(Random(11), 16)


def header(length: int, width: int) -> bytes:
    return length.to_bytes(8, "little") + width.to_bytes(8, "little")


def test_a_blob_is_a_header_and_the_rows_kept(device: Device, state: Glm5NextDsaState) -> None:
    assert state.snapshot_blob(device.backend) == header(0, 3)
    state.append(device.backend, *arrays(device, ROWS[:7]))
    state.rewind_to(5)
    blob = state.snapshot_blob(device.backend)
    assert blob == header(5, 3) + b"".join(joined(ROWS[:5]))
    assert len(blob) == 16 + 5 * (4 * 3 + 1)


@pytest.mark.parametrize("made", [bytes, bytearray, memoryview])
def test_a_blob_comes_back_whole(device: Device, state: Glm5NextDsaState, made: Any) -> None:
    state.append(device.backend, *arrays(device, ROWS[:9]))
    blob = state.snapshot_blob(device.backend)
    state.rewind_to(0)
    state.append(device.backend, *arrays(device, ROWS[10:12]))
    state.restore_blob(made(blob), device.backend)
    assert raw(device, state.rows(device.backend, 0, 9)) == joined(ROWS[:9])


def test_a_shorter_blob_hides_the_rows_it_does_not_have(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS))
    state.restore_blob(header(2, 3) + b"".join(joined(ROWS[8:10])), device.backend)
    assert state.len() == 2
    assert raw(device, state.rows(device.backend, 0, 2)) == joined(ROWS[8:10])


def test_a_blob_moves_between_backends_and_contexts(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS))
    other = NumpyBackend()
    restored = Glm5NextDsaState.alloc(other, SMALL)
    restored.restore_blob(state.snapshot_blob(device.backend), other)
    assert restored.snapshot_blob(other) == state.snapshot_blob(device.backend)


def test_bytes_a_kernel_wrote_come_back_whatever_their_values(device: Device, state: Glm5NextDsaState) -> None:
    nan = (b"\xc0\x7f" * 3, b"\x80\xff" * 3, b"\x02")
    overwrite(device, state, 0, [nan])
    state.advance(1)
    blob = state.snapshot_blob(device.backend)
    state.rewind_to(0)
    state.restore_blob(blob, device.backend)
    assert state.snapshot_blob(device.backend) == blob == header(1, 3) + b"".join(nan)


GOOD = header(4, 3) + b"".join(joined(ROWS[:4]))
REFUSED: list[tuple[Any, str]] = [
    (b"", "snapshot: found 0 bytes; expected at least 16, the header; fetch the whole snapshot"),
    (GOOD[:15], "snapshot: found 15 bytes; expected at least 16, the header; fetch the whole snapshot"),
    (
        header(4, 4) + GOOD[16:],
        "snapshot: found rows of index_head_dim 4; expected 3, this cache's; "
        "restore it into the model it was taken from",
    ),
    (
        header(17, 3) + bytes(17 * 13),
        "snapshot: found 17 rows; expected at most 16, the rows reserved; raise --max-seq-len to at least 20",
    ),
    (
        header(2**64 - 1, 3),
        f"snapshot: found {2**64 - 1} rows; expected at most 16, the rows reserved; "
        f"raise --max-seq-len to at least {2**64}",
    ),
    (
        GOOD[:-1],
        "snapshot: found 67 bytes for 4 rows; expected 68; take the snapshot again; this one is not whole",
    ),
    (
        GOOD + b"\0",
        "snapshot: found 69 bytes for 4 rows; expected 68; take the snapshot again; this one is not whole",
    ),
    (68, "snapshot: found int; expected bytes; pass what snapshot_blob returned"),
    ("blob", "snapshot: found str; expected bytes; pass what snapshot_blob returned"),
]


@pytest.mark.parametrize(("blob", "words"), REFUSED)
def test_a_blob_that_does_not_fit_changes_nothing(
    device: Device, state: Glm5NextDsaState, blob: Any, words: str
) -> None:
    state.append(device.backend, *arrays(device, ROWS[5:8]))
    before = image(device, state)
    with pytest.raises(BlobError) as refused:
        state.restore_blob(blob, device.backend)
    assert str(refused.value) == words
    assert (state.len(), image(device, state)) == (3, before)


def test_a_blob_is_refused_where_a_buffer_is_gone_before_the_first_copy(
    device: Device, state: Glm5NextDsaState
) -> None:
    state.append(device.backend, *arrays(device, ROWS[5:8]))
    assert state.k_normed is not None
    assert state.valid is not None
    before = device.backend.copy_out(state.k_normed, 0, 96)
    device.backend.free(state.valid)
    with pytest.raises(HandleError):
        state.restore_blob(GOOD, device.backend)
    assert (device.backend.copy_out(state.k_normed, 0, 96), state.len()) == (before, 3)


class Breaks(NumpyBackend):
    """A device that fails in its second copy."""

    copies = 0

    def copy_in(self, handle: Handle, offset: int, data: bytes) -> None:
        self.copies += 1
        if self.copies == 2:
            raise OSError("device lost")
        super().copy_in(handle, offset, data)


def test_a_device_that_fails_half_way_leaves_no_row_readable() -> None:
    backend = Breaks()
    state = Glm5NextDsaState.alloc(backend, SMALL)
    state.advance(3)
    with pytest.raises(OSError, match="device lost"):
        state.restore_blob(GOOD, backend)
    assert state.is_empty()
    state.restore_blob(GOOD, backend)
    assert state.snapshot_blob(backend) == GOOD


def test_the_presets_blob_is_513_bytes_a_row(device: Device) -> None:
    state = Glm5NextDsaState.alloc(device.backend, PRESET)
    overwrite(device, state, 0, random_rows(Random(1), 100, width=128), width=128)
    state.advance(100)
    assert len(state.snapshot_blob(device.backend)) == 16 + 100 * 513 == 51_316
    state.free(device.backend)
