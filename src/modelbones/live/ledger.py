"""`Ledger`: who holds which device bytes; every backend here is one, with a device below it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from math import prod
from secrets import randbits
from threading import Lock
from typing import Generic, Protocol, Self, TypeVar

from modelbones.dtypes import DType
from modelbones.errors import HandleError, UsageError
from modelbones.live.backend import Handle
from modelbones.live.counts import ensure_count
from modelbones.units import whole_bytes


class Storage(Protocol):
    """A one-dimensional array of device bytes."""

    def __getitem__(self, key: slice, /) -> Self:
        """The bytes of a slice, not copied."""


S = TypeVar("S", bound=Storage)


class Ledger(ABC, Generic[S]):
    """The allocations of one device: made here, looked up here, given back here.

    Attributes:
        place: What messages call this device.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        # Random, so that a handle from another process is foreign here too.
        self._number = randbits(64)
        self._serials = count(1)
        self._live: dict[Handle, S] = {}
        self._lock = Lock()

    @abstractmethod
    def _take(self, nbytes: int) -> S:
        """Device bytes nobody has written yet; `DeviceFullError` when there are none."""

    def alloc(self, nbytes: int) -> Handle:
        """Take `nbytes` of the device.

        Raises:
            DeviceFullError: The device does not give them; the ledger is as it was.
        """
        storage = self._take(ensure_count(f"{self.place}.alloc", nbytes))
        with self._lock:
            handle = Handle(owner=self._number, serial=next(self._serials), nbytes=nbytes)
            self._live[handle] = storage
        return handle

    def free(self, handle: Handle) -> None:
        """Give an allocation back, once.

        Raises:
            HandleError: It was freed before, or is another backend's.
        """
        self._ensure_ours(handle)
        with self._lock:
            storage = self._live.pop(handle, None)
        if storage is None:
            raise self._stale(handle)

    def ensure_live(self, handle: Handle) -> None:
        """Raise `HandleError` unless `handle` is a live allocation of this backend."""
        self._storage(handle)

    def live_allocs(self) -> int:
        """Allocations not freed yet."""
        with self._lock:
            return len(self._live)

    def live_bytes(self) -> int:
        """Bytes of the allocations not freed yet."""
        with self._lock:
            return sum(handle.nbytes for handle in self._live)

    def _span(self, handle: Handle, offset: int, nbytes: int) -> S:
        """The bytes of an allocation at `offset`, all of them inside it."""
        storage = self._storage(handle)
        end = ensure_count(f"{self.place} offset", offset) + ensure_count(f"{self.place} size", nbytes)
        if end > handle.nbytes:
            raise UsageError(
                f"{self.place}: bytes {offset} to {end} of an allocation; expected an end of at most "
                f"{handle.nbytes}, its size; correct the offset"
            )
        return storage[offset:end]

    def _typed_span(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> S:
        """The bytes of an array at `offset`, which is a multiple of its element's."""
        if ensure_count(f"{self.place} offset", offset) % whole_bytes(dtype.bits):
            raise UsageError(
                f"{self.place}: an array of {dtype.value} at byte {offset}; expected a multiple of "
                f"{whole_bytes(dtype.bits)}; correct the offset"
            )
        return self._span(handle, offset, whole_bytes(prod(shape) * dtype.bits))

    def _storage(self, handle: Handle) -> S:
        self._ensure_ours(handle)
        with self._lock:
            storage = self._live.get(handle)
        if storage is None:
            raise self._stale(handle)
        return storage

    def _ensure_ours(self, handle: object) -> None:
        if not isinstance(handle, Handle) or handle.owner != self._number:
            raise HandleError(
                place=self.place,
                found="a handle of another backend" if isinstance(handle, Handle) else f"{handle!r:.60}, no handle",
                expected="one that this backend's alloc returned",
                fix="pass the backend that allocated it",
            )

    def _stale(self, handle: Handle) -> HandleError:
        return HandleError(
            place=self.place,
            found=f"allocation {handle.serial} of {handle.nbytes} bytes was freed already",
            expected="a live one",
            fix="free it once, and use nothing after",
        )
