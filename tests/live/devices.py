"""What the tests of live state share: one device a backend, a small config, raw rows."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from modelbones.live import Glm5NextDsaConfig, Glm5NextDsaState, NumpyBackend, Rows
from modelbones.live.backend import Handle
from tests import published

PRESET = Glm5NextDsaConfig.from_config(published.nested())
SMALL = replace(PRESET, index_head_dim=3, index_topk=8, max_context=18)
"""16 rows of 3 + 3 bf16 and 1 byte: 13 bytes a row, 208 bytes a layer."""
SMALL_ROWS = 16
SMALL_ROW_BYTES = 13
SMALL_BYTES = 208

NAN = b"\xc0\x7f"
"""A bf16 NaN, little-endian."""
INFINITY = b"\x80\x7f"

Row = tuple[bytes, bytes, bytes]
"""One row as the device stores it: key bytes, gate bytes, valid byte."""


class NumpyDevice:
    """The numpy backend, and arrays of its kind made from raw bytes."""

    def __init__(self) -> None:
        self.backend: Any = NumpyBackend()

    def array(self, data: bytes, shape: tuple[int, ...], dtype: str) -> Any:
        import numpy as np
        from ml_dtypes import bfloat16

        types = {"bfloat16": bfloat16, "uint8": np.uint8, "float16": np.float16, "bool": np.bool_}
        return np.frombuffer(data, dtype=types[dtype]).reshape(shape)

    def data(self, array: Any) -> bytes:
        return bytes(array.tobytes())


class TorchDevice:
    """The torch backend, and tensors made from raw bytes."""

    def __init__(self, device: str = "cpu") -> None:
        from modelbones.live import TorchBackend

        self.backend: Any = TorchBackend(device)

    def array(self, data: bytes, shape: tuple[int, ...], dtype: str) -> Any:
        import torch

        raw = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        return raw.view(getattr(torch, dtype)).reshape(shape).to(self.backend.device)

    def data(self, array: Any) -> bytes:
        import torch

        return bytes(array.contiguous().view(torch.uint8).cpu().numpy().tobytes())


Device = NumpyDevice | TorchDevice


def device_of(kind: str) -> Device:
    """The device of a kind; skips where torch is not installed."""
    if kind == "numpy":
        return NumpyDevice()
    pytest.importorskip("torch")
    return TorchDevice()


def random_rows(random: Random, num_rows: int, width: int = 3) -> list[Row]:
    """Rows of finite bf16 values, any bits otherwise."""
    return [(_finite(random, width), _finite(random, width), random.randbytes(1)) for _ in range(num_rows)]


def _finite(random: Random, width: int) -> bytes:
    # The top exponent bit is cleared, so that no exponent is all ones.
    return bytes(byte & 0xBF if place % 2 else byte for place, byte in enumerate(random.randbytes(2 * width)))


def arrays(device: Device, rows: list[Row], width: int = 3) -> Rows:
    """The three arrays of `rows`, as `append` takes them."""
    keys, gates, valid = (b"".join(row[part] for row in rows) for part in range(3))
    shape = (len(rows), width)
    return Rows(
        device.array(keys, shape, "bfloat16"),
        device.array(gates, shape, "bfloat16"),
        device.array(valid, (len(rows),), "uint8"),
    )


def raw(device: Device, rows: Rows) -> tuple[bytes, bytes, bytes]:
    """The bytes of three arrays."""
    return device.data(rows.k_normed), device.data(rows.gate), device.data(rows.valid)


def joined(rows: list[Row]) -> tuple[bytes, bytes, bytes]:
    """The bytes three buffers hold for `rows`, said without the code under test."""
    return b"".join(row[0] for row in rows), b"".join(row[1] for row in rows), b"".join(row[2] for row in rows)


def handles(state: Glm5NextDsaState) -> tuple[Handle, Handle, Handle]:
    """The three handles of a live state."""
    assert state.k_normed is not None
    assert state.gate is not None
    assert state.valid is not None
    return state.k_normed, state.gate, state.valid


def image(device: Device, state: Glm5NextDsaState) -> tuple[bytes, ...]:
    """Every byte of the three buffers, those past `len` included."""
    return tuple(device.backend.copy_out(handle, 0, handle.nbytes) for handle in handles(state))


def overwrite(device: Device, state: Glm5NextDsaState, start: int, rows: list[Row], width: int = 3) -> None:
    """What a kernel does: bytes straight into the buffers, no cursor moved."""
    for handle, data, row_bytes in zip(handles(state), joined(rows), (2 * width, 2 * width, 1), strict=True):
        device.backend.copy_in(handle, start * row_bytes, data)


POISON: Row = (NAN * 3, NAN * 3, b"\xff")


def poison(device: Device, state: Glm5NextDsaState) -> None:
    """NaN in every row at and past `len`: reading one would show."""
    overwrite(device, state, state.len(), [POISON] * (state.capacity() - state.len()))
