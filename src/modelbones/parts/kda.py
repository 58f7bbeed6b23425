"""Kimi Delta Attention: a gated delta rule over heads, behind three short convolutions."""

from __future__ import annotations

from modelbones.buffers import FIXED, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import KEPT_F32, in_heads, matrix, out_heads, vector
from modelbones.parts.part import Part, StateKind
from modelbones.ranks import Axis, Split, split
from modelbones.tensors import Role, TensorPattern


def kda(
    *, hidden_size: int, num_heads: int, head_dim: int, kernel: int, decay_shape: tuple[int, ...] | None = None
) -> Part:
    """A KDA block: 15 tensors; recurrent and conv state, fixed in a sequence's length.

    q, k and v share heads and width. `decay_shape` is that of `A_log` where it is stored with
    more dimensions than `[num_heads]`. Source of names and shapes: zai-org/GLM-5.3-Flash
    model.safetensors.index.json; of the state: Metrale/metrale-inference-alpha model-arch
    glm5next_skeleton.rs::state_budget.
    """
    width = num_heads * head_dim
    heads_out = out_heads(width, num_heads)
    return Part(
        name="kda",
        tensors=(
            *(matrix(f"self_attn.{x}_proj", width, hidden_size, Role.KDA, cut=heads_out) for x in "qkv"),
            matrix("self_attn.b_proj", num_heads, hidden_size, Role.KDA, cut=out_heads(num_heads, num_heads)),
            matrix("self_attn.f_a_proj", head_dim, hidden_size, Role.KDA),
            matrix("self_attn.f_b_proj", width, head_dim, Role.KDA, cut=heads_out),
            matrix("self_attn.g_a_proj", head_dim, hidden_size, Role.KDA),
            matrix("self_attn.g_b_proj", width, head_dim, Role.KDA, cut=heads_out),
            *(_conv(f"self_attn.{x}_conv1d.weight", width, kernel, heads_out) for x in "qkv"),
            _decay(decay_shape or (num_heads,), num_heads),
            vector("self_attn.dt_bias", width, Role.KDA, cut=heads_out, permitted=KEPT_F32),
            vector("self_attn.o_norm.weight", head_dim, Role.KDA),
            matrix("self_attn.o_proj", hidden_size, width, Role.KDA, cut=in_heads(width, num_heads)),
        ),
        buffers=(
            Buffer(
                name="recurrent",
                term="kda_recurrent",
                shape=(num_heads, head_dim, head_dim),
                dtype=DType.F32,
                per=FIXED,
                home=Home.SLOT,
                rewind=Rewind.SNAPSHOT,
                split=split(Axis.HEADS, 0, num_heads),
            ),
            Buffer(
                name="conv",
                term="kda_conv",
                shape=(kernel - 1, 3 * width),
                dtype=DType.BF16,
                per=FIXED,
                home=Home.SLOT,
                rewind=Rewind.SNAPSHOT,
                split=(Split(axis=Axis.HEADS, dim=1, blocks=((width, num_heads),) * 3),),
                draft_rows=1,
            ),
        ),
        state=StateKind.KDA_RECURRENT,
    )


def _conv(name: str, width: int, kernel: int, cut: tuple[Split, ...]) -> TensorPattern:
    return TensorPattern(name=name, shape=(width, 1, kernel), role=Role.KDA, split=cut)


def _decay(shape: tuple[int, ...], num_heads: int) -> TensorPattern:
    """`A_log`: one decay a head, along the dimension that counts them."""
    cut = split(Axis.HEADS, shape.index(num_heads), num_heads)
    return TensorPattern(name="self_attn.A_log", shape=shape, role=Role.KDA, permitted=KEPT_F32, split=cut)
