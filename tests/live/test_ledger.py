"""The ledger of each backend: what is held, and every handle it refuses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest

from modelbones.dtypes import DType
from modelbones.errors import DeviceFullError, HandleError, UsageError
from modelbones.live import NumpyBackend
from tests.live.devices import Device

BF16 = DType.BF16


def test_what_is_held_is_counted_to_the_byte(device: Device) -> None:
    backend = device.backend
    small, empty, large = backend.alloc(3), backend.alloc(0), backend.alloc(1 << 20)
    assert (backend.live_allocs(), backend.live_bytes()) == (3, 3 + (1 << 20))
    for handle in (empty, large, small):
        backend.free(handle)
    assert (backend.live_allocs(), backend.live_bytes()) == (0, 0)


def test_bytes_go_to_the_device_and_back(device: Device) -> None:
    backend = device.backend
    handle = backend.alloc(8)
    backend.copy_in(handle, 0, bytes(8))
    backend.copy_in(handle, 3, b"abc")
    backend.copy_in(handle, 8, b"")
    assert backend.copy_out(handle, 2, 5) == b"\0abc\0"
    assert backend.copy_out(handle, 8, 0) == b""


def test_a_view_is_the_device_bytes_and_a_read_is_a_copy(device: Device) -> None:
    backend = device.backend
    handle = backend.alloc(8)
    backend.copy_in(handle, 0, bytes(8))
    read = backend.read(handle, 2, (1, 3), BF16)
    view = backend.view(handle, 2, (1, 3), BF16)
    view[...] = device.array(b"\x80\x3f" * 3, (1, 3), "bfloat16")
    assert backend.copy_out(handle, 0, 8) == b"\0\0" + b"\x80\x3f" * 3
    assert device.data(read) == bytes(6)


USES: list[Callable[[Any, Any], Any]] = [
    lambda backend, handle: backend.free(handle),
    lambda backend, handle: backend.ensure_live(handle),
    lambda backend, handle: backend.copy_in(handle, 0, b"a"),
    lambda backend, handle: backend.copy_out(handle, 0, 1),
    lambda backend, handle: backend.view(handle, 0, (1,), DType.U8),
    lambda backend, handle: backend.read(handle, 0, (1,), DType.U8),
]


@pytest.mark.parametrize("use", USES)
def test_a_freed_handle_is_refused(device: Device, use: Callable[[Any, Any], Any]) -> None:
    backend = device.backend
    handle = backend.alloc(8)
    copied = deepcopy(handle)
    backend.free(handle)
    again = backend.alloc(8)
    for stale in (handle, copied):
        with pytest.raises(HandleError, match="allocation 1 of 8 bytes was freed already; expected a live one"):
            use(backend, stale)
    assert (backend.live_allocs(), backend.live_bytes()) == (1, 8)
    backend.free(again)


@pytest.mark.parametrize("use", USES)
def test_a_foreign_handle_is_refused(device: Device, use: Callable[[Any, Any], Any]) -> None:
    backend = device.backend
    own, foreign = backend.alloc(8), NumpyBackend().alloc(8)
    with pytest.raises(HandleError) as refused:
        use(backend, foreign)
    assert str(refused.value) == (
        f"{backend.place}: a handle of another backend; expected one that this backend's alloc returned; "
        "pass the backend that allocated it"
    )
    for nothing in (None, 0, 8, "k_normed"):
        with pytest.raises(HandleError, match="no handle; expected one that this backend's alloc returned"):
            use(backend, nothing)
    backend.free(own)


@pytest.mark.parametrize("nbytes", [-1, True, 1.0, None])
def test_a_size_that_is_no_count_is_refused(device: Device, nbytes: Any) -> None:
    with pytest.raises(UsageError, match="expected an integer, 0 or more"):
        device.backend.alloc(nbytes)
    assert device.backend.live_allocs() == 0


@pytest.mark.parametrize("nbytes", [2**62, 2**63, 2**70])
def test_an_allocation_the_device_cannot_give_leaves_the_ledger_alone(device: Device, nbytes: int) -> None:
    held = device.backend.alloc(5)
    with pytest.raises(DeviceFullError) as refused:
        device.backend.alloc(nbytes)
    assert str(refused.value) == (
        f"{device.backend.place}: the device gives no {nbytes} bytes beside the 5 live ones; "
        "expected room for them; lower --max-seq-len or free other sequences"
    )
    assert device.backend.live_allocs() == 1
    device.backend.free(held)


def test_a_copy_past_the_end_is_refused(device: Device) -> None:
    backend = device.backend
    handle = backend.alloc(8)
    backend.copy_in(handle, 0, bytes(8))
    with pytest.raises(UsageError, match="bytes 6 to 9 of an allocation; expected an end of at most 8, its size"):
        backend.copy_in(handle, 6, b"abc")
    for offset, nbytes in ((-1, 1), (0, 9), (9, 0), (0, -1)):
        with pytest.raises(UsageError):
            backend.copy_out(handle, offset, nbytes)
    with pytest.raises(UsageError, match="an array of BF16 at byte 1; expected a multiple of 2"):
        backend.view(handle, 1, (1,), BF16)
    with pytest.raises(UsageError, match=r"offset: found \"0\"; expected an integer, 0 or more"):
        backend.view(handle, "0", (1,), BF16)
    assert backend.copy_out(handle, 0, 8) == bytes(8)


def test_threads_share_a_ledger(device: Device) -> None:
    backend = device.backend

    def churn(seed: int) -> None:
        for size in range(50):
            handle = backend.alloc(seed + size)
            backend.copy_in(handle, 0, bytes(seed + size))
            backend.free(handle)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(churn, range(16)))
    assert (backend.live_allocs(), backend.live_bytes()) == (0, 0)


def test_of_many_threads_that_free_one_handle_one_succeeds(device: Device) -> None:
    handle = device.backend.alloc(8)

    def free(_: int) -> bool:
        try:
            device.backend.free(handle)
        except HandleError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(free, range(32))) == 1


def test_serials_are_never_used_again(device: Device) -> None:
    serials = []
    for _ in range(5):
        handle = device.backend.alloc(1)
        serials.append(handle.serial)
        device.backend.free(handle)
    assert all(later > earlier for earlier, later in pairwise(serials))
