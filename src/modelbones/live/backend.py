"""`Backend`: the little a live cache asks of a device, and the handles it hands out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from modelbones.dtypes import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A claim on one allocation of one backend; copies of it are the same claim.

    Attributes:
        owner: Number of the ledger that made it.
        serial: Its number in that ledger, never used again.
        nbytes: Size of the allocation.
    """

    owner: int
    serial: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a backend sees in an array offered to it.

    Attributes:
        kind: What it is, as a message shows it, e.g. "float32 [3, 128]".
        shape: Its sizes; None when it is no array of this backend.
        dtype: Its element type; None when no live buffer is stored in it.
    """

    kind: str
    shape: tuple[int, ...] | None
    dtype: DType | None


class Backend(Protocol):
    """A device with a ledger. Threads may share one; a state belongs to one thread at a time.

    Sizes and offsets are bytes. Every method that takes a handle refuses one that was
    freed or is another backend's (`HandleError`) before it touches anything.
    """

    def alloc(self, nbytes: int) -> Handle:
        """Take `nbytes` of the device; what they hold at first is not said."""

    def free(self, handle: Handle) -> None:
        """Give an allocation back; when this raises, it was not given back."""

    def ensure_live(self, handle: Handle) -> None:
        """Raise `HandleError` unless `handle` is a live allocation of this backend."""

    def live_allocs(self) -> int:
        """Allocations not freed yet."""

    def live_bytes(self) -> int:
        """Bytes of the allocations not freed yet."""

    def copy_in(self, handle: Handle, offset: int, data: bytes) -> None:
        """Copy host bytes to the device, at `offset` of the allocation."""

    def copy_out(self, handle: Handle, offset: int, nbytes: int) -> bytes:
        """Copy device bytes to the host, from `offset` of the allocation."""

    def view(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> Any:
        """An array over the device bytes themselves, for kernels; do not keep it past `free`."""

    def measure(self, array: Any) -> Measured:
        """Shape and type of an array someone offers; it is not read."""

    def is_finite(self, array: Any) -> bool:
        """Whether a measured array holds neither a NaN nor an infinity."""

    def write(self, handle: Handle, offset: int, array: Any) -> None:
        """Copy a measured array into the allocation, at `offset`."""

    def read(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> Any:
        """A new array with a copy of the device bytes at `offset`."""
