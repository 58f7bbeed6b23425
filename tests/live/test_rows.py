"""Rows in and out of a cache: what comes back, what is refused before the first byte."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from modelbones.errors import BadRowsError, CacheFullError, HandleError, RowsMissingError, UsageError
from modelbones.live import Glm5NextDsaState
from tests.live.devices import (
    PRESET,
    SMALL,
    Device,
    NumpyDevice,
    arrays,
    handles,
    image,
    joined,
    random_rows,
    raw,
)

ROWS = random_rows(Random(4), 16)


def test_rows_come_back_as_they_were_written(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:3]))
    state.append(device.backend, *arrays(device, []))
    state.append(device.backend, *arrays(device, ROWS[3:16]))
    assert state.len() == 16
    assert raw(device, state.rows(device.backend, 0, 16)) == joined(ROWS)
    assert raw(device, state.rows(device.backend, 2, 5)) == joined(ROWS[2:5])
    read = state.rows(device.backend, 4, 4)
    assert (tuple(read.k_normed.shape), tuple(read.gate.shape), tuple(read.valid.shape)) == ((0, 3), (0, 3), (0,))


def test_rows_read_are_copies(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:2]))
    read = state.rows(device.backend, 0, 2)
    read.k_normed[...] = 0
    assert raw(device, state.rows(device.backend, 0, 2)) == joined(ROWS[:2])


def test_a_read_stops_at_len(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:4]))
    state.rewind_to(3)
    with pytest.raises(RowsMissingError) as refused:
        state.rows(device.backend, 2, 4)
    assert str(refused.value) == (
        "indexer cache: 3 rows held; the read ends at row 4, so 1 row is MISSING; "
        "read below len; what lies past it was never written or was taken back"
    )
    with pytest.raises(UsageError, match="found start 2 after stop 1"):
        state.rows(device.backend, 2, 1)
    for start, stop in ((-1, 2), (0, -1), (True, 2)):
        with pytest.raises(UsageError, match="expected an integer, 0 or more"):
            state.rows(device.backend, start, stop)


SHAPES: list[tuple[int, str, tuple[int, ...], str]] = [
    (0, "float16", (2, 3), "indexer.k_normed: found float16 [2, 3]; expected bfloat16 [2, 3]"),
    (0, "bfloat16", (2, 4), "indexer.k_normed: found bfloat16 [2, 4]; expected bfloat16 [2, 3]"),
    (0, "bfloat16", (2,), "indexer.k_normed: found bfloat16 [2]; expected bfloat16 [2, 3]"),
    (0, "bfloat16", (), "indexer.k_normed: found bfloat16 []; expected bfloat16 [n, 3]"),
    (0, "bfloat16", (1, 3), "indexer.gate: found bfloat16 [2, 3]; expected bfloat16 [1, 3]"),
    (1, "bfloat16", (3, 3), "indexer.gate: found bfloat16 [3, 3]; expected bfloat16 [2, 3]"),
    (1, "uint8", (2, 3), "indexer.gate: found uint8 [2, 3]; expected bfloat16 [2, 3]"),
    (2, "bool", (2,), "indexer.valid: found bool [2]; expected uint8 [2]"),
    (2, "uint8", (2, 1), "indexer.valid: found uint8 [2, 1]; expected uint8 [2]"),
    (2, "uint8", (1,), "indexer.valid: found uint8 [1]; expected uint8 [2]"),
]


@pytest.mark.parametrize(("part", "dtype", "shape", "words"), SHAPES)
def test_rows_of_a_wrong_shape_or_type_change_nothing(
    device: Device, state: Glm5NextDsaState, part: int, dtype: str, shape: tuple[int, ...], words: str
) -> None:
    before = image(device, state)
    offered = list(arrays(device, ROWS[:2]))
    width = {"bool": 1, "uint8": 1}.get(dtype, 2)
    count = 1
    for size in shape:
        count *= size
    offered[part] = device.array(bytes(count * width), shape, dtype)
    with pytest.raises(BadRowsError) as refused:
        state.append(device.backend, *offered)
    assert str(refused.value) == f"{words}; pass the same number of rows of each"
    assert (state.len(), image(device, state)) == (0, before)


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("bits", [b"\xc0\x7f", b"\xc0\xff", b"\x80\x7f", b"\x80\xff", b"\x81\x7f"])
def test_a_value_that_is_not_finite_changes_nothing(
    device: Device, state: Glm5NextDsaState, part: int, bits: bytes
) -> None:
    before = image(device, state)
    offered = list(arrays(device, ROWS[:2]))
    offered[part] = device.array(joined(ROWS[:2])[part][:10] + bits, (2, 3), "bfloat16")
    with pytest.raises(BadRowsError) as refused:
        state.append(device.backend, *offered)
    name = ("indexer.k_normed", "indexer.gate")[part]
    assert str(refused.value) == (
        f"{name}: found a NaN or an infinity; expected finite values; "
        "look at the step that computed them; nothing was written"
    )
    assert (state.len(), image(device, state)) == (0, before)


def test_a_signalling_nan_is_refused_in_our_words_where_numpy_is_strict() -> None:
    """`np.isfinite` warned of a signalling bf16 NaN, and raised FloatingPointError under `np.seterr(all="raise")`."""
    device = NumpyDevice()
    state = Glm5NextDsaState.alloc(device.backend, SMALL)
    offered = arrays(device, ROWS[:1])
    bad = device.array(b"\x81\x7f" * 3, (1, 3), "bfloat16")
    with np.errstate(all="raise"), pytest.raises(BadRowsError, match="a NaN or an infinity"):
        state.append(device.backend, bad, offered.gate, offered.valid)


def test_what_is_no_array_of_this_backend_is_refused(device: Device, state: Glm5NextDsaState) -> None:
    good = arrays(device, ROWS[:1])
    with pytest.raises(BadRowsError, match=r"indexer\.k_normed: found list, no "):
        state.append(device.backend, [[1.0, 2.0, 3.0]], good.gate, good.valid)
    with pytest.raises(BadRowsError, match=r"indexer\.valid: found bytes, no "):
        state.append(device.backend, good.k_normed, good.gate, b"\1")


def test_an_append_past_the_end_writes_no_byte(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:15]))
    before = image(device, state)
    with pytest.raises(CacheFullError):
        state.append(device.backend, *arrays(device, ROWS[:2]))
    assert (state.len(), image(device, state)) == (15, before)


def test_a_state_one_of_whose_buffers_is_gone_refuses_before_it_writes(device: Device, state: Glm5NextDsaState) -> None:
    k_normed, _, valid = handles(state)
    device.backend.free(valid)
    before = device.backend.copy_out(k_normed, 0, 96)
    with pytest.raises(HandleError, match="was freed already"):
        state.append(device.backend, *arrays(device, ROWS[:2]))
    assert (device.backend.copy_out(k_normed, 0, 96), state.len()) == (before, 0)


def test_the_preset_puts_row_1000_at_byte_256000(device: Device) -> None:
    state = Glm5NextDsaState.alloc(device.backend, replace(PRESET, max_context=16_386))
    assert state.capacity() == 16_384
    assert state.row_offset(1_000) == 256_000
    assert device.backend.live_bytes() == 8_404_992
    state.free(device.backend)
