"""`NumpyBackend`: live state in host memory; bf16 through ml_dtypes."""

from __future__ import annotations

from typing import Any

from modelbones.dtypes import DType
from modelbones.errors import DeviceFullError, ExtraMissingError
from modelbones.live.backend import Handle, Measured
from modelbones.live.ledger import Ledger

try:
    import numpy as np
    from ml_dtypes import bfloat16
    from numpy.typing import NDArray
except ImportError as error:
    raise ExtraMissingError(place="NumpyBackend", module=error.name or "numpy", extra="state") from error

_NUMPY_OF: dict[DType, np.dtype[Any]] = {DType.BF16: np.dtype(bfloat16), DType.U8: np.dtype(np.uint8)}
_OURS = {numpy: ours for ours, numpy in _NUMPY_OF.items()}


class NumpyBackend(Ledger["NDArray[np.uint8]"]):
    """Host memory behind the backend protocol."""

    def __init__(self) -> None:
        super().__init__("NumpyBackend")

    def _take(self, nbytes: int) -> NDArray[np.uint8]:
        try:
            return np.empty(nbytes, dtype=np.uint8)
        except (MemoryError, ValueError) as error:
            raise DeviceFullError(place=self.place, nbytes=nbytes, live_bytes=self.live_bytes()) from error

    def copy_in(self, handle: Handle, offset: int, data: bytes) -> None:
        """Copy host bytes to `offset` of the allocation."""
        self._span(handle, offset, len(data))[...] = np.frombuffer(data, dtype=np.uint8)

    def copy_out(self, handle: Handle, offset: int, nbytes: int) -> bytes:
        """Copy `nbytes` from `offset` of the allocation."""
        return self._span(handle, offset, nbytes).tobytes()

    def view(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
        """An array over the bytes themselves; do not keep it past `free`."""
        return self._typed_span(handle, offset, shape, dtype).view(_NUMPY_OF[dtype]).reshape(shape)

    def measure(self, array: Any) -> Measured:
        """Shape and type of an offered array."""
        if not isinstance(array, np.ndarray):
            return Measured(kind=f"{type(array).__name__}, no numpy.ndarray", shape=None, dtype=None)
        kind = f"{array.dtype.name} {list(array.shape)}"
        return Measured(kind=kind, shape=array.shape, dtype=_OURS.get(array.dtype))

    def is_finite(self, array: NDArray[Any]) -> bool:
        """Whether it holds neither a NaN nor an infinity."""
        # A signalling NaN would warn, or raise where the caller made numpy strict.
        with np.errstate(invalid="ignore"):
            return bool(np.isfinite(np.asarray(array)).all())

    def write(self, handle: Handle, offset: int, array: NDArray[Any]) -> None:
        """Copy a measured array to `offset` of the allocation."""
        self.view(handle, offset, array.shape, _OURS[array.dtype])[...] = np.asarray(array)

    def read(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
        """A new array with a copy of the bytes at `offset`."""
        return self.view(handle, offset, shape, dtype).copy()
