"""Rows on their way into a cache and out of it: what is checked before the first byte moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modelbones.buffers import Buffer
from modelbones.dtypes import DType
from modelbones.errors import BadRowsError
from modelbones.live.backend import Backend

_WORDS = {DType.BF16: "bfloat16", DType.U8: "uint8"}


class Rows(NamedTuple):
    """Rows of one layer's indexer cache, as arrays of the backend that read them.

    Attributes:
        k_normed: `[n, index_head_dim] bf16`, keys after their norm.
        gate: `[n, index_head_dim] bf16`, the compress gate.
        valid: `[n] u8`, not zero where the position counts.
    """

    k_normed: Any
    gate: Any
    valid: Any


def ensure_same_rows(backend: Backend, buffers: Sequence[Buffer], rows: Rows) -> int:
    """How many rows `rows` holds, each part of the shape and type its buffer stores.

    Raises:
        BadRowsError: A part is no array of this backend, or of a wrong shape or type.
    """
    first = backend.measure(rows.k_normed).shape
    num_rows = first[0] if first else 0
    for buffer, array in zip(buffers, rows, strict=True):
        seen = backend.measure(array)
        shape = (num_rows, *buffer.shape)
        if seen.shape != shape or seen.dtype is not buffer.dtype:
            sizes = ", ".join(map(str, (num_rows if first else "n", *buffer.shape)))
            expected = f"{_WORDS[buffer.dtype]} [{sizes}]"
            fix = "pass the same number of rows of each"
            raise BadRowsError(name=buffer.name, found=seen.kind, expected=expected, fix=fix)
    return num_rows


def ensure_finite(backend: Backend, buffers: Sequence[Buffer], rows: Rows) -> None:
    """Raise `BadRowsError` for a NaN or an infinity; one such row poisons every pool it enters."""
    for buffer, array in zip(buffers, rows, strict=True):
        if not backend.is_finite(array):
            raise BadRowsError(
                name=buffer.name,
                found="a NaN or an infinity",
                expected="finite values",
                fix="look at the step that computed them; nothing was written",
            )
