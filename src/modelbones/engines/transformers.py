"""What transformers' own caches keep of each layer's state, in bytes.

The caches hold everything in the model's dtype but a recurrence in fp32, one tensor a state and
no pages: `DynamicCache` as many rows as there are tokens, `StaticCache` the rows of its longest
sequence from the start. Source: transformers 5.23 cache_utils.py; modeling_deepseek_v4.py.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from modelbones.buffers import PERSISTENT, TOKEN, Buffer, Grows, window
from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.parts.part import StateKind
from modelbones.skeleton import Layer, Skeleton


class CacheClass(Enum):
    """Which of transformers' caches a model runs with."""

    DYNAMIC = "dynamic"
    """`DynamicCache`: grows as tokens come; a layer holds nothing before its first."""
    STATIC = "static"
    """`StaticCache`: every row of `max_cache_len` tokens is there from the first token on."""


def stored(layer: Layer, *, dtype: DType, cache: CacheClass = CacheClass.DYNAMIC) -> tuple[Buffer, ...]:
    """What `cache` keeps of `layer` in a model that runs in `dtype`.

    Raises:
        UsageError: A static cache of a layer that compresses older tokens.
    """
    compresses = StateKind.COMPRESSED_KV in layer.states
    if compresses and cache is CacheClass.STATIC:
        raise UsageError(
            f"transformers: layer {layer.index} compresses older tokens; expected a layer with a static cache class; "
            "use the dynamic cache"
        )
    kept = (buffer for buffer in layer.buffers if buffer.home in PERSISTENT)
    return tuple(
        as_stored
        for buffer in kept
        # A layer with a window alone stores the row that is key and value at once as both.
        for as_stored in [_stored(buffer, dtype, cache)] * (2 if buffer.name == "window" and not compresses else 1)
    )


def _stored(buffer: Buffer, dtype: DType, cache: CacheClass) -> Buffer:
    """One buffer as a cache tensor.

    A convolution's window is kernel wide, not kernel - 1, and no draft adds to it. A flag a row,
    packed beside the rows, takes an element of their dtype. Rows are not reserved in pools. A
    sliding window keeps one row fewer between steps where the cache grows, and all where it is static.
    """
    shape, per = buffer.shape, buffer.per
    if buffer.draft_rows:
        shape = (shape[0] + 1, *shape[1:])
    if per.grows is Grows.TOKEN:
        per = TOKEN
    if per.grows is Grows.WINDOW and cache is CacheClass.DYNAMIC:
        per = window(per.k - 1)
    kept = buffer.dtype if buffer.dtype is DType.F32 else dtype
    return replace(buffer, shape=shape, per=per, dtype=kept, draft_rows=0)


def layer_bytes(
    layer: Layer,
    *,
    tokens: int,
    dtype: DType,
    cache: CacheClass = CacheClass.DYNAMIC,
    max_cache_len: int | None = None,
) -> int:
    """Bytes `layer` holds once `tokens` went through it; 0 before the first, in either cache.

    A static cache needs its `max_cache_len`, which `tokens` may not pass.

    Raises:
        UsageError: A static cache without `max_cache_len`, too short for `tokens`, or of a layer
            that has none.
    """
    buffers = stored(layer, dtype=dtype, cache=cache)
    rows = tokens if cache is CacheClass.DYNAMIC else _ensure_room(tokens, max_cache_len)
    return sum(buffer.nbytes(tokens=rows) for buffer in buffers) if tokens else 0


def _ensure_room(tokens: int, max_cache_len: int | None) -> int:
    if max_cache_len is None or max_cache_len < max(tokens, 1):
        raise UsageError(
            f"transformers: found max_cache_len {max_cache_len} for {tokens} tokens; "
            "expected at least as many; a static cache never grows"
        )
    return max_cache_len


def sequence_bytes(
    skeleton: Skeleton,
    *,
    tokens: int,
    dtype: DType | None = None,
    cache: CacheClass = CacheClass.DYNAMIC,
    max_cache_len: int | None = None,
) -> int:
    """Bytes of one sequence's cache, all text layers; `dtype` is the config's own when unset.

    The MTP layer has a cache apart and is not in it.
    """
    runs_in = skeleton.dtype if dtype is None else dtype
    return sum(
        layer_bytes(layer, tokens=tokens, dtype=runs_in, cache=cache, max_cache_len=max_cache_len)
        for layer in skeleton.layers
    )
