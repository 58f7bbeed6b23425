"""What stands in a synthetic tensor: holes, zeros, or finite random numbers."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import BinaryIO
from zlib import crc32

from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.synth.layout import Tensor
from modelbones.units import MIB

_CHUNK = 8 * MIB
_FINITE_BELOW = {DType.F8_E4M3: 0x7F, DType.F8_E5M2: 0x7C}
"""The first magnitude that is no finite number."""


class Fill(Enum):
    """What `synth --fill` may say."""

    SPARSE = "sparse"
    ZEROS = "zeros"
    RANDOM = "random"


Writer = Callable[[BinaryIO, Tensor], None]


def writer(fill: Fill, seed: int) -> Writer:
    """The function that writes one tensor's bytes at a file's end."""
    if fill is Fill.SPARSE:
        return _hole
    return _zeros if fill is Fill.ZEROS else _random(seed)


def _hole(file: BinaryIO, tensor: Tensor) -> None:
    file.seek(tensor.nbytes, 1)


def _zeros(file: BinaryIO, tensor: Tensor) -> None:
    for size in _chunks(tensor.nbytes):
        file.write(bytes(size))


def _chunks(nbytes: int) -> Iterator[int]:
    for start in range(0, nbytes, _CHUNK):
        yield min(_CHUNK, nbytes - start)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Signals wait: what a handler raises inside an extension's first call can be lost there."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _random(seed: int) -> Writer:
    try:
        with _signals_held():
            import numpy as np

            np.random.default_rng([0, 0]).normal(size=1)
    except ImportError:
        raise UsageError(
            "--fill random: numpy is not installed; expected it for random numbers; pip install 'modelbones[state]'"
        ) from None

    def write(file: BinaryIO, tensor: Tensor) -> None:
        # Each tensor has its own stream, so that shards and order change nothing.
        stream = np.random.default_rng([seed, crc32(tensor.name.encode())])
        for size in _chunks(tensor.nbytes):
            file.write(_numbers(stream, tensor.dtype, size))

    def _numbers(stream: np.random.Generator, dtype: DType, size: int) -> bytes:
        count = size * 8 // dtype.bits
        if dtype is DType.F32:
            return stream.normal(0, 0.02, count).astype(np.float32).tobytes()
        if dtype is DType.F16:
            return stream.normal(0, 0.02, count).astype(np.float16).tobytes()
        if dtype is DType.BF16:
            # The upper half of an fp32 number is a bf16 number.
            return (stream.normal(0, 0.02, count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        if dtype in _FINITE_BELOW:
            magnitude = stream.integers(0, _FINITE_BELOW[dtype], count, dtype=np.uint8)
            return (magnitude | stream.integers(0, 2, count, dtype=np.uint8) << 7).tobytes()
        return stream.integers(0, 128, size, dtype=np.uint8).tobytes()

    return write
