"""The snapshot of one layer's indexer cache: a header, then the rows of each buffer.

`[len u64][index_head_dim u64]` little-endian, k_normed rows, gate rows, valid bytes, all of
`[0, len)`. Source: Metrale/metrale-inference-alpha model-arch aux_state.rs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from modelbones.buffers import Buffer
from modelbones.errors import BlobError
from modelbones.units import round_up

_HEADER = struct.Struct("<QQ")


def pack(length: int, index_head_dim: int, parts: Sequence[bytes]) -> bytes:
    """The snapshot of `length` rows, given each buffer's bytes."""
    return b"".join((_HEADER.pack(length, index_head_dim), *parts))


def length_of(blob: bytes, buffers: Sequence[Buffer], *, index_head_dim: int, capacity: int) -> int:
    """How many rows `blob` holds, when all of it fits a cache of this width and capacity.

    Raises:
        BlobError: Its header, width, row count or size is wrong.
    """
    if len(blob) < _HEADER.size:
        found, expected = f"{len(blob)} bytes", f"at least {_HEADER.size}, the header"
        raise BlobError(found=found, expected=expected, fix="fetch the whole snapshot")
    length: int
    length, width = _HEADER.unpack_from(blob)
    if width != index_head_dim:
        found, expected = f"rows of index_head_dim {width}", f"{index_head_dim}, this cache's"
        raise BlobError(found=found, expected=expected, fix="restore it into the model it was taken from")
    if length > capacity:
        found, expected = f"{length} rows", f"at most {capacity}, the rows reserved"
        enough = round_up(length, buffers[0].per.reserve_step)
        raise BlobError(found=found, expected=expected, fix=f"raise --max-seq-len to at least {enough}")
    size = _HEADER.size + length * sum(buffer.row_bytes() for buffer in buffers)
    if len(blob) != size:
        found, expected = f"{len(blob)} bytes for {length} rows", f"{size}"
        raise BlobError(found=found, expected=expected, fix="take the snapshot again; this one is not whole")
    return length


def parts_of(blob: bytes, length: int, buffers: Sequence[Buffer]) -> Iterator[bytes]:
    """Each buffer's rows in a blob that `length_of` accepted."""
    start = _HEADER.size
    for buffer in buffers:
        end = start + length * buffer.row_bytes()
        yield blob[start:end]
        start = end
