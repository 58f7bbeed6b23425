"""Gated DeltaNet: a gated delta rule whose value heads share key heads, behind one short convolution."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import FIXED, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import in_heads, matrix, out_heads, vector
from modelbones.parts.part import Part, StateKind
from modelbones.ranks import Axis, Split, split
from modelbones.tensors import Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class GdnSizes:
    """The widths of a Gated DeltaNet block, in the words of its config.

    `linear_num_value_heads` is a multiple of `linear_num_key_heads`.
    """

    hidden_size: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_kernel_dim: int

    @property
    def key_width(self) -> int:
        """Elements of all key heads."""
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_width(self) -> int:
        """Elements of all value heads."""
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def qkv_blocks(self) -> tuple[tuple[int, int], ...]:
        """Queries, keys and values side by side, each with its heads."""
        keys = (self.key_width, self.linear_num_key_heads)
        return keys, keys, (self.value_width, self.linear_num_value_heads)


def gdn(sizes: GdnSizes, *, fused: bool) -> Part:
    """A Gated DeltaNet block; recurrent and conv state, fixed in a sequence's length.

    `fused` is Qwen3-Next's form: for each key head its query, key, values and gates in one
    matrix, its two decay inputs in another. Qwen3.5 stores four. Source of names and shapes:
    transformers 5.23 modeling_qwen3_next.py::Qwen3NextGatedDeltaNet and
    modeling_qwen3_5.py::Qwen3_5GatedDeltaNet.
    """
    heads, width, role = sizes.linear_num_value_heads, sizes.value_width, Role.GDN
    whole_heads = out_heads(heads, heads)
    qkv = (Split(axis=Axis.HEADS, dim=0, blocks=sizes.qkv_blocks),)
    conv = (2 * sizes.key_width + width, 1, sizes.linear_conv_kernel_dim)
    return Part(
        name="gdn",
        tensors=(
            *(_fused_inputs(sizes) if fused else _split_inputs(sizes, qkv)),
            TensorPattern(name="linear_attn.conv1d.weight", shape=conv, role=role, split=qkv),
            vector("linear_attn.dt_bias", heads, role, cut=whole_heads),
            vector("linear_attn.A_log", heads, role, cut=whole_heads),
            vector("linear_attn.norm.weight", sizes.linear_value_head_dim, role),
            matrix("linear_attn.out_proj", sizes.hidden_size, width, role, cut=in_heads(width, heads)),
        ),
        buffers=_state(sizes),
        state=StateKind.GDN_RECURRENT,
    )


def _fused_inputs(sizes: GdnSizes) -> tuple[TensorPattern, ...]:
    keys, hidden = sizes.linear_num_key_heads, sizes.hidden_size
    qkvz, ba = 2 * (sizes.key_width + sizes.value_width), 2 * sizes.linear_num_value_heads
    return (
        matrix("linear_attn.in_proj_qkvz", qkvz, hidden, Role.GDN, cut=out_heads(qkvz, keys)),
        matrix("linear_attn.in_proj_ba", ba, hidden, Role.GDN, cut=out_heads(ba, keys)),
    )


def _split_inputs(sizes: GdnSizes, qkv: tuple[Split, ...]) -> tuple[TensorPattern, ...]:
    heads, width, hidden = sizes.linear_num_value_heads, sizes.value_width, sizes.hidden_size
    qkv_width = 2 * sizes.key_width + width
    return (
        matrix("linear_attn.in_proj_qkv", qkv_width, hidden, Role.GDN, cut=qkv),
        matrix("linear_attn.in_proj_z", width, hidden, Role.GDN, cut=out_heads(width, heads)),
        *(matrix(f"linear_attn.in_proj_{x}", heads, hidden, Role.GDN, cut=out_heads(heads, heads)) for x in "ba"),
    )


def _state(sizes: GdnSizes) -> tuple[Buffer, ...]:
    """`[value heads, key dim, value dim]` fp32, and the conv window `[kernel - 1, q | k | v]` bf16."""
    heads = sizes.linear_num_value_heads
    conv_width = 2 * sizes.key_width + sizes.value_width

    def slot(name: str, shape: tuple[int, ...], dtype: DType, cut: tuple[Split, ...], draft_rows: int = 0) -> Buffer:
        return Buffer(
            name=name,
            term=f"gdn_{name}",
            shape=shape,
            dtype=dtype,
            per=FIXED,
            home=Home.SLOT,
            rewind=Rewind.SNAPSHOT,
            split=cut,
            draft_rows=draft_rows,
        )

    shape = (heads, sizes.linear_key_head_dim, sizes.linear_value_head_dim)
    window = (sizes.linear_conv_kernel_dim - 1, conv_width)
    by_heads = (Split(axis=Axis.HEADS, dim=1, blocks=sizes.qkv_blocks),)
    return (
        slot("recurrent", shape, DType.F32, split(Axis.HEADS, 0, heads)),
        slot("conv", window, DType.BF16, by_heads, draft_rows=1),
    )
