"""How tensors are stored, as a header tells it: element type, shape, bytes, place.

There is one `Stored` for all tensors that are alike, and columns instead of a record a
tensor: a checkpoint has 100,000 of them, of a few hundred kinds.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from modelbones.dtypes import DType

LARGEST = 2**63 - 1
"""No dimension, element count, byte count or offset is above this."""
METADATA = "__metadata__"
AGAIN = "write or download the file again"
BY_NAME: dict[str, DType] = {dtype.value: dtype for dtype in DType}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How a tensor is stored. Tensors of one checkpoint that are alike share one record."""

    dtype: DType
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A header that is right in itself, as columns of one length, in the header's order.

    Attributes:
        names: Tensor names.
        stored: How each is stored.
        starts: Where each begins, in bytes from the start of the data.
        data_bytes: Where the last one ends: the data's length.
        metadata: The file's `__metadata__`.
    """

    names: tuple[str, ...]
    stored: list[Stored]
    starts: array[int]
    data_bytes: int
    metadata: Mapping[str, str] = field(default_factory=dict)


class UnfitError(ValueError):
    """A dtype and shape that no tensor has; kept inside this package, never shown."""


class Forms(dict[tuple[str, tuple[int, ...]], Stored]):
    """(dtype name, shape) -> its `Stored`, made and checked at the first look.

    The shape's members must be known to be ints beforehand: `(2.0,)` would find `(2,)`.
    """

    def __missing__(self, key: tuple[str, tuple[int, ...]]) -> Stored:
        name, shape = key
        dtype = BY_NAME.get(name)
        if dtype is None or too_large(shape):
            raise UnfitError
        bits = prod(shape) * dtype.bits
        if bits % 8 or bits // 8 > LARGEST:
            raise UnfitError
        self[key] = stored = Stored(dtype=dtype, shape=shape, nbytes=bits // 8)
        return stored


def too_large(shape: tuple[int, ...]) -> bool:
    """Whether a dimension or the element count, multiplied up in order, is above `LARGEST`."""
    count = 1
    for dim in shape:
        count *= dim
        if dim > LARGEST or count > LARGEST:
            return True
    return False
