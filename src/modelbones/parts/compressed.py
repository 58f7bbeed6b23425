"""DeepSeek-V4's attention: one shared row a token in a window, older tokens compressed into pools.

Every layer attends to a window of rows that are key and value at once. A compressing layer also
attends to one row for each complete pool: all of them (HCA), or those an indexer selects (CSA),
whose pools overlap by one. Source: transformers 5.23 modeling_deepseek_v4.py; the published
names: deepseek-ai/DeepSeek-V4-Flash model.safetensors.index.json.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import Buffer, Growth, Home, Rewind, last, pool, ragged, window
from modelbones.dtypes import DType
from modelbones.parts.linear import KEPT_F32, in_heads, matrix, out_heads, vector
from modelbones.parts.part import Part, StateKind
from modelbones.tensors import Role, TensorPattern

CSA_POOL = 4
HCA_POOL = 128
_ROLE = Role.COMPRESSED


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedSizes:
    """The widths of this attention, in the words of its config."""

    hidden_size: int
    num_attention_heads: int
    head_dim: int
    q_lora_rank: int
    o_groups: int
    o_lora_rank: int
    sliding_window: int
    index_n_heads: int
    index_head_dim: int


def window_mqa(sizes: CompressedSizes) -> Part:
    """A layer that keeps its window and nothing older."""
    return Part(name="window_mqa", tensors=_attention(sizes), buffers=(_window(sizes),), state=StateKind.WINDOW_KV)


def heavily_compressed(sizes: CompressedSizes) -> Part:
    """HCA: pools of 128 tokens beside the window, all of them attended."""
    return Part(
        name="hca",
        tensors=(*_attention(sizes), *_compressor("attn.compressor", sizes, sizes.head_dim, HCA_POOL, series=1)),
        buffers=(_window(sizes), *_pools("compressed", sizes.head_dim, HCA_POOL, overlap=False)),
        state=StateKind.COMPRESSED_KV,
    )


def compressed_sparse(sizes: CompressedSizes) -> Part:
    """CSA: overlapping pools of 4 tokens beside the window, selected by an indexer with pools of its own."""
    heads, width = sizes.index_n_heads, sizes.index_head_dim
    return Part(
        name="csa",
        tensors=(
            *_attention(sizes),
            *_compressor("attn.compressor", sizes, sizes.head_dim, CSA_POOL, series=2),
            *_compressor("attn.indexer.compressor", sizes, width, CSA_POOL, series=2),
            matrix("attn.indexer.wq_b", heads * width, sizes.q_lora_rank, _ROLE),
            matrix("attn.indexer.weights_proj", heads, sizes.hidden_size, _ROLE),
        ),
        buffers=(
            _window(sizes),
            *_pools("compressed", sizes.head_dim, CSA_POOL, overlap=True),
            *_pools("indexer", width, CSA_POOL, overlap=True),
        ),
        state=StateKind.COMPRESSED_KV,
    )


def _attention(sizes: CompressedSizes) -> tuple[TensorPattern, ...]:
    """Low-rank query, one shared row, a sink a head, and an output projected group by group."""
    heads, rank, hidden = sizes.num_attention_heads, sizes.q_lora_rank, sizes.hidden_size
    width, groups = heads * sizes.head_dim, sizes.o_groups
    inner = groups * sizes.o_lora_rank
    return (
        matrix("attn.wq_a", rank, hidden, _ROLE),
        vector("attn.q_norm.weight", rank, _ROLE),
        matrix("attn.wq_b", width, rank, _ROLE, cut=out_heads(width, heads)),
        matrix("attn.wkv", sizes.head_dim, hidden, _ROLE),
        vector("attn.kv_norm.weight", sizes.head_dim, _ROLE),
        matrix("attn.wo_a", inner, width // groups, _ROLE, cut=out_heads(inner, groups)),
        matrix("attn.wo_b", hidden, inner, _ROLE, cut=in_heads(inner, groups)),
        vector("attn.attn_sink", heads, _ROLE, cut=out_heads(heads, heads), permitted=KEPT_F32),
    )


def _compressor(name: str, sizes: CompressedSizes, width: int, k: int, *, series: int) -> tuple[TensorPattern, ...]:
    """Row and gate projections of `series` widths, a bias for each place in a pool, and a norm."""
    together = series * width
    return (
        TensorPattern(name=f"{name}.ape", shape=(k, together), role=_ROLE, permitted=KEPT_F32),
        vector(f"{name}.norm.weight", width, _ROLE),
        matrix(f"{name}.wgate", together, sizes.hidden_size, _ROLE),
        matrix(f"{name}.wkv", together, sizes.hidden_size, _ROLE),
    )


def _window(sizes: CompressedSizes) -> Buffer:
    """The last `sliding_window` rows, `[head_dim]` bf16 each, key and value at once."""
    per, paged, again = window(sizes.sliding_window), Home.PAGED, Rewind.REPLAY
    return _buffer("window", "window_kv", (sizes.head_dim,), per, home=paged, rewind=again)


def _pools(name: str, width: int, k: int, *, overlap: bool) -> tuple[Buffer, ...]:
    """A row for each complete pool of `k` tokens; the rows and gates of the pool being filled.

    Overlapping pools project two series a token, and keep the first of the last complete pool,
    its gates in fp32 with their bias added.
    """
    term, tail_width = f"{name}_pools", (2 if overlap else 1) * width
    slot, again = Home.SLOT, Rewind.REPLAY
    rows = _buffer(f"{name}.pools", term, (width,), pool(k), home=Home.PAGED, rewind=Rewind.TRUNCATE)
    tails = tuple(
        _buffer(f"{name}.tail_{part}", f"{name}_tail", (tail_width,), ragged(k), home=slot, rewind=again)
        for part in ("kv", "gate")
    )
    if not overlap:
        return rows, *tails
    kept = f"{name}_overlap"
    return (
        rows,
        *tails,
        _buffer(f"{name}.overlap_kv", kept, (k, width), last(k), home=slot, rewind=again),
        _buffer(f"{name}.overlap_gate", kept, (k, width), last(k), home=slot, rewind=again, dtype=DType.F32),
    )


def _buffer(
    name: str,
    term: str,
    shape: tuple[int, ...],
    per: Growth,
    *,
    home: Home,
    rewind: Rewind,
    dtype: DType = DType.BF16,
) -> Buffer:
    return Buffer(name=name, term=term, shape=shape, dtype=dtype, per=per, home=home, rewind=rewind)
