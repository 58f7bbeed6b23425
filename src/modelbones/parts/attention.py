"""Attention over keys and values of their own, query heads in groups that share a pair."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import TOKEN, Buffer, Home, Rewind, window
from modelbones.dtypes import DType
from modelbones.parts.linear import in_heads, matrix, out_heads, vector
from modelbones.parts.part import Part, StateKind
from modelbones.ranks import Axis, split
from modelbones.tensors import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSizes:
    """The widths of grouped-query attention, in the words of its config."""

    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionForm:
    """What an architecture adds to the four projections.

    Attributes:
        at: What the block is called in its layer.
        qkv_bias: Whether the query, key and value projections have biases.
        o_bias: Whether the output projection has one.
        head_norms: Whether queries and keys are normed head by head.
        gated: Whether `q_proj` holds, for each head, its query rows and then its gate rows.
        sinks: Whether each head has a learned logit beside those of its keys.
    """

    at: str = "self_attn"
    qkv_bias: bool = False
    o_bias: bool = False
    head_norms: bool = False
    gated: bool = False
    sinks: bool = False


PLAIN = AttentionForm()


def attention(sizes: AttentionSizes, form: AttentionForm = PLAIN, *, window_tokens: int | None = None) -> Part:
    """An attention block over all earlier tokens, or over the last `window_tokens`."""
    heads, kv_heads = sizes.num_attention_heads, sizes.num_key_value_heads
    q_width = heads * sizes.head_dim * (2 if form.gated else 1)
    kv_width, o_width = kv_heads * sizes.head_dim, heads * sizes.head_dim
    role, at, hidden = Role.ATTENTION, form.at, sizes.hidden_size
    queries, pairs = out_heads(q_width, heads), out_heads(kv_width, kv_heads)
    biases = (("q", q_width, queries), ("k", kv_width, pairs), ("v", kv_width, pairs)) if form.qkv_bias else ()
    norms = ("q_norm", "k_norm") if form.head_norms else ()
    sinks = (vector(f"{at}.sinks", heads, role, cut=out_heads(heads, heads)),) if form.sinks else ()
    return Part(
        name="attention" if window_tokens is None else "window_attention",
        tensors=(
            matrix(f"{at}.q_proj", q_width, hidden, role, cut=queries),
            *(matrix(f"{at}.{x}_proj", kv_width, hidden, role, cut=pairs) for x in "kv"),
            matrix(f"{at}.o_proj", hidden, o_width, role, cut=in_heads(o_width, heads)),
            *(vector(f"{at}.{x}_proj.bias", width, role, cut=cut) for x, width, cut in biases),
            *((vector(f"{at}.o_proj.bias", hidden, role),) if form.o_bias else ()),
            *(vector(f"{at}.{norm}.weight", sizes.head_dim, role) for norm in norms),
            *sinks,
        ),
        buffers=keys_and_values(sizes, window_tokens=window_tokens),
        state=StateKind.KV if window_tokens is None else StateKind.WINDOW_KV,
    )


def keys_and_values(sizes: AttentionSizes, *, window_tokens: int | None = None) -> tuple[Buffer, Buffer]:
    """One key and one value row a token, `[num_key_value_heads, head_dim]` bf16 each, in the KV pages.

    Ranks share them by whole heads; with more ranks than heads each holds one. A window keeps the
    last `window_tokens` rows: what a token attends to, itself included. Engines keep one row fewer
    between steps, or all of them. A row that left the window is gone, so taking tokens back asks
    for rows that only another pass over the tokens before them gives.
    """

    def rows(name: str) -> Buffer:
        return Buffer(
            name=name,
            term="kv" if window_tokens is None else "window_kv",
            shape=(sizes.num_key_value_heads, sizes.head_dim),
            dtype=DType.BF16,
            per=TOKEN if window_tokens is None else window(window_tokens),
            home=Home.PAGED,
            rewind=Rewind.TRUNCATE if window_tokens is None else Rewind.REPLAY,
            split=split(Axis.HEADS, 0, sizes.num_key_value_heads),
        )

    return rows("keys"), rows("values")
