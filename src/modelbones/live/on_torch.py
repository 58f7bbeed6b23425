"""`TorchBackend`: live state on a torch device, the CPU or a GPU."""

from __future__ import annotations

from typing import Any

from modelbones.dtypes import DType
from modelbones.errors import DeviceFullError, ExtraMissingError, UsageError
from modelbones.live.backend import Handle, Measured
from modelbones.live.ledger import Ledger

try:
    import torch  # type: ignore[import-not-found,unused-ignore]
except ImportError as error:
    raise ExtraMissingError(place="TorchBackend", module=error.name or "torch", extra="torch") from error

_TORCH_OF = {DType.BF16: torch.bfloat16, DType.U8: torch.uint8}
_OURS = {theirs: ours for ours, theirs in _TORCH_OF.items()}


class TorchBackend(Ledger[torch.Tensor]):
    """One torch device behind the backend protocol.

    Copies run on the current stream of the calling thread; whoever works on several
    streams orders them, as with any tensor.

    Attributes:
        device: Where the allocations live.
    """

    def __init__(self, device: str | torch.device = "cpu") -> None:
        self.device = _usable(device)
        super().__init__(f"TorchBackend({self.device})")

    def _take(self, nbytes: int) -> torch.Tensor:
        try:
            # A tensor made in inference mode could not be written outside of it.
            with torch.inference_mode(False):
                return torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        except (MemoryError, RuntimeError, TypeError) as error:
            raise DeviceFullError(place=self.place, nbytes=nbytes, live_bytes=self.live_bytes()) from error

    def copy_in(self, handle: Handle, offset: int, data: bytes) -> None:
        """Copy host bytes to `offset` of the allocation."""
        span = self._span(handle, offset, len(data))
        if data:
            span.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def copy_out(self, handle: Handle, offset: int, nbytes: int) -> bytes:
        """Copy `nbytes` from `offset` of the allocation."""
        data: bytes = self._span(handle, offset, nbytes).cpu().numpy().tobytes()
        return data

    def view(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> torch.Tensor:
        """A tensor over the bytes themselves; do not keep it past `free`."""
        return self._typed_span(handle, offset, shape, dtype).view(_TORCH_OF[dtype]).view(shape)

    def measure(self, array: Any) -> Measured:
        """Shape and type of an offered tensor; it may live on another device."""
        if not isinstance(array, torch.Tensor):
            return Measured(kind=f"{type(array).__name__}, no torch.Tensor", shape=None, dtype=None)
        if array.is_meta or array.is_nested or array.layout is not torch.strided:
            return Measured(kind="a tensor without plain data", shape=None, dtype=None)
        kind = f"{str(array.dtype).removeprefix('torch.')} {list(array.shape)}"
        return Measured(kind=kind, shape=tuple(array.shape), dtype=_OURS.get(array.dtype))

    def is_finite(self, array: torch.Tensor) -> bool:
        """Whether it holds neither a NaN nor an infinity; on a GPU this waits for it."""
        return bool(torch.isfinite(array).all())

    def write(self, handle: Handle, offset: int, array: torch.Tensor) -> None:
        """Copy a measured tensor to `offset` of the allocation; no gradient follows it."""
        self.view(handle, offset, tuple(array.shape), _OURS[array.dtype]).copy_(array.detach())

    def read(self, handle: Handle, offset: int, shape: tuple[int, ...], dtype: DType) -> torch.Tensor:
        """A new tensor with a copy of the bytes at `offset`."""
        return self.view(handle, offset, shape, dtype).clone()


def _usable(device: str | torch.device) -> torch.device:
    """The device with its index; refused when nothing can be allocated on it."""
    try:
        found = torch.empty(0, device=device).device
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        raise _no_device(device) from error
    if found.type == "meta":
        raise _no_device(device)
    return found


def _no_device(device: object) -> UsageError:
    return UsageError(f"TorchBackend: found device {str(device)!r:.60}; expected one this torch holds data on; name it")
