"""Manifold hyper-connections: `hc_mult` residual streams, mixed at both sites of a layer."""

from __future__ import annotations

from modelbones.buffers import TOKEN, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import HYPER_CONNECTION_F32, vector
from modelbones.parts.part import Part
from modelbones.tensors import Role, TensorPattern

HYPER_HEAD_MATRIX = "hc_head_fn"


def hyper_connection(*, hidden_size: int, hc_mult: int) -> Part:
    """The 6 raw parameters of one layer, no `.weight` behind their names.

    `fn` gives, from all streams, `hc_mult` weights into the sublayer, `hc_mult` out of it and
    `hc_mult` x `hc_mult` between streams: (2 + hc_mult) x hc_mult rows; `scale` has one
    factor for each of the three. Source: zai-org/GLM-5.3-Flash model.safetensors.index.json.
    """
    mixes = (2 + hc_mult) * hc_mult
    role = Role.HYPER_CONNECTION
    return Part(
        name="hyper_connection",
        tensors=tuple(
            pattern
            for site in ("attn", "ffn")
            for pattern in (
                TensorPattern(name=f"hc_{site}_fn", shape=(mixes, hc_mult * hidden_size), role=role),
                vector(f"hc_{site}_base", mixes, role, permitted=HYPER_CONNECTION_F32),
                vector(f"hc_{site}_scale", 3, role, permitted=HYPER_CONNECTION_F32),
            )
        ),
    )


def hyper_head(*, hidden_size: int, hc_mult: int) -> tuple[TensorPattern, ...]:
    """The 3 raw parameters of a learned collapse: from all streams, one weight for each.

    Source: deepseek-ai/DeepSeek-V4-Flash inference/model.py::ParallelHead.
    """
    role = Role.HYPER_CONNECTION
    return (
        TensorPattern(name=HYPER_HEAD_MATRIX, shape=(hc_mult, hc_mult * hidden_size), role=role),
        vector("hc_head_base", hc_mult, role, permitted=HYPER_CONNECTION_F32),
        vector("hc_head_scale", 1, role, permitted=HYPER_CONNECTION_F32),
    )


def highway(*, hidden_size: int, hc_mult: int) -> Buffer:
    """The residual streams of one token, `[hc_mult, hidden_size]` fp32: an activation."""
    return Buffer(
        name="highway",
        term="mhc_highway",
        shape=(hc_mult, hidden_size),
        dtype=DType.F32,
        per=TOKEN,
        home=Home.ACTIVATION,
        rewind=Rewind.NOTHING,
    )
