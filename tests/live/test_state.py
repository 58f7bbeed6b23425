"""`Glm5NextDsaState`: what it takes, its cursor, and the exact words of its refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from modelbones.errors import BadRowsError, CacheFullError, ConfigError, HandleError, RowsMissingError, UsageError
from modelbones.live import Glm5NextDsaState, NumpyBackend
from modelbones.live.backend import Handle
from tests.live.devices import (
    PRESET,
    SMALL,
    SMALL_BYTES,
    Device,
    NumpyDevice,
    arrays,
    handles,
    image,
    joined,
    poison,
    random_rows,
    raw,
)

ROWS = random_rows(Random(4), 16)


@pytest.fixture
def state(device: Device) -> Glm5NextDsaState:
    made = Glm5NextDsaState.alloc(device.backend, SMALL)
    poison(device, made)
    return made


# What it takes, and gives back.


def test_alloc_takes_three_buffers_of_exact_sizes(device: Device, state: Glm5NextDsaState) -> None:
    assert [handle.nbytes for handle in handles(state)] == [16 * 6, 16 * 6, 16]
    assert (device.backend.live_allocs(), device.backend.live_bytes()) == (3, SMALL_BYTES)
    assert (state.len(), state.is_empty(), state.capacity(), state.index_head_dim()) == (0, True, 16, 3)


def test_alloc_refuses_a_config_that_does_not_validate(device: Device) -> None:
    with pytest.raises(ConfigError):
        Glm5NextDsaState.alloc(device.backend, replace(SMALL, index_topk=9))
    assert device.backend.live_allocs() == 0


def test_a_context_shorter_than_a_pool_reserves_nothing(device: Device) -> None:
    state = Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=3))
    assert (device.backend.live_allocs(), device.backend.live_bytes(), state.capacity()) == (3, 0, 0)
    with pytest.raises(CacheFullError, match="row 1 is past its 0 reserved rows"):
        state.append(device.backend, *arrays(device, ROWS[:1]))
    state.free(device.backend)


class Flaky(NumpyBackend):
    """A backend whose n-th alloc, or n-th free, fails."""

    def __init__(self, *, alloc: int = 0, frees: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.failing_alloc, self.failing_frees = alloc, frees
        self.allocs = self.frees = 0

    def alloc(self, nbytes: int) -> Handle:
        self.allocs += 1
        if self.allocs == self.failing_alloc:
            raise KeyboardInterrupt
        return super().alloc(nbytes)

    def free(self, handle: Handle) -> None:
        self.frees += 1
        if self.frees in self.failing_frees:
            raise OSError(f"free {self.frees}")
        super().free(handle)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_alloc_that_fails_half_way_frees_what_it_took(failing: int) -> None:
    backend = Flaky(alloc=failing)
    with pytest.raises(KeyboardInterrupt):
        Glm5NextDsaState.alloc(backend, SMALL)
    assert (backend.live_allocs(), backend.live_bytes()) == (0, 0)


def test_an_alloc_that_fails_half_way_frees_all_it_can_and_says_what_it_could_not() -> None:
    backend = Flaky(alloc=3, frees=frozenset({1}))
    with pytest.raises(KeyboardInterrupt) as failed:
        Glm5NextDsaState.alloc(backend, SMALL)
    assert failed.value.__notes__ == ["a buffer taken before could not be freed: free 1"]
    assert (backend.frees, backend.live_allocs()) == (2, 1)


def test_free_gives_back_once_and_lets_go(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS))
    for _ in range(3):
        state.free(device.backend)
        assert (state.k_normed, state.gate, state.valid, state.len()) == (None, None, None, 0)
        assert (device.backend.live_allocs(), device.backend.live_bytes()) == (0, 0)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_free_that_fails_half_way_loses_nothing_and_frees_nothing_twice(failing: int) -> None:
    backend = Flaky(frees=frozenset({failing}))
    state = Glm5NextDsaState.alloc(backend, SMALL)
    state.advance(5)
    with pytest.raises(OSError, match=f"free {failing}"):
        state.free(backend)
    assert (backend.live_allocs(), state.len()) == (1, 0)
    with pytest.raises(HandleError, match="this state was freed"):
        state.advance(1)
    state.free(backend)
    assert (backend.frees, backend.live_allocs()) == (4, 0)
    state.free(backend)
    assert backend.frees == 4


def test_a_free_on_another_backend_changes_nothing(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:5]))
    with pytest.raises(HandleError, match="a handle of another backend"):
        state.free(NumpyBackend())
    assert raw(device, state.rows(device.backend, 0, 5)) == joined(ROWS[:5])
    state.free(device.backend)
    assert device.backend.live_bytes() == 0


# Views over buffers that someone else frees.


def test_a_view_reads_the_owners_rows_and_never_frees_them(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:5]))
    view = Glm5NextDsaState.borrowed(SMALL, *handles(state), length=4)
    assert raw(device, view.rows(device.backend, 0, 4)) == joined(ROWS[:4])
    assert (view.capacity(), view.index_head_dim(), view.len(), state.len()) == (16, 3, 4, 5)
    view.free(device.backend)
    assert (view.k_normed, view.len(), device.backend.live_allocs()) == (None, 0, 3)
    with pytest.raises(HandleError, match="this state was freed"):
        view.rows(device.backend, 0, 0)
    assert raw(device, state.rows(device.backend, 0, 5)) == joined(ROWS[:5])


def test_a_view_is_dead_once_its_owner_is_freed(device: Device, state: Glm5NextDsaState) -> None:
    view = Glm5NextDsaState.borrowed(SMALL, *handles(state))
    state.free(device.backend)
    with pytest.raises(HandleError, match="was freed already"):
        view.append(device.backend, *arrays(device, ROWS[:1]))
    with pytest.raises(HandleError, match="was freed already"):
        view.snapshot_blob(device.backend)
    assert view.len() == 0
    view.free(device.backend)


def test_owners_and_views_may_be_freed_in_any_order(device: Device) -> None:
    random = Random(9)
    for _ in range(20):
        owners = [Glm5NextDsaState.alloc(device.backend, SMALL) for _ in range(4)]
        views = [Glm5NextDsaState.borrowed(SMALL, *handles(owner)) for owner in owners for _ in range(2)]
        everyone = [*owners, *views, *owners]
        random.shuffle(everyone)
        left = set(map(id, owners))
        for state in everyone:
            state.free(device.backend)
            left.discard(id(state))
            assert device.backend.live_bytes() == len(left) * SMALL_BYTES


def test_a_view_of_what_is_no_live_buffer_is_refused(device: Device, state: Glm5NextDsaState) -> None:
    k_normed, gate, valid = handles(state)
    with pytest.raises(HandleError) as refused:
        Glm5NextDsaState.borrowed(SMALL, k_normed, None, valid)
    assert str(refused.value) == "indexer.gate: no handle; expected at least 96 bytes; borrow from a live owner"
    with pytest.raises(HandleError) as refused:
        Glm5NextDsaState.borrowed(SMALL, k_normed, gate, device.backend.alloc(15))
    assert str(refused.value) == (
        "indexer.valid: a handle of 15 bytes; expected at least 16 bytes; borrow from a live owner"
    )
    with pytest.raises(CacheFullError):
        Glm5NextDsaState.borrowed(SMALL, k_normed, gate, valid, length=17)
    with pytest.raises(ConfigError):
        Glm5NextDsaState.borrowed(replace(SMALL, index_topk=9), k_normed, gate, valid)


# The cursor.


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


NUMBERS: list[Callable[[Glm5NextDsaState, Any], Any]] = [
    lambda state, n: state.row_offset(n),
    lambda state, n: state.ensure_room(n),
    lambda state, n: state.ensure_room_through(n),
    lambda state, n: state.advance(n),
    lambda state, n: state.rewind_to(n),
    lambda state, n: state.sync_to(n, 0),
    lambda state, n: state.sync_to(0, n),
    lambda state, n: Glm5NextDsaState.borrowed(SMALL, *handles(state), length=n),
]


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("n", [-1, True, 1.0, "1", None])
def test_what_is_no_count_is_refused(
    state: Glm5NextDsaState, call: Callable[[Glm5NextDsaState, Any], Any], n: Any
) -> None:
    state.advance(3)
    with pytest.raises(UsageError, match="expected an integer, 0 or more; pass a Python int"):
        call(state, n)
    assert state.len() == 3


# Rows in and out.


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
