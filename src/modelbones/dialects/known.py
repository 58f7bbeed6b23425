"""The writers whose spellings are known: their moves, their prefixes, who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from modelbones.dialects.algebra import Absorb, Concat, Move, Rename, Reshape, Stack, Unstack
from modelbones.tensors import Group

_GATE_UP = ("gate_proj.weight", "up_proj.weight")
_FORGET_GATE = ("f_a_proj.weight", "f_b_proj.weight", "dt_bias", "A_log")
_HC = tuple((site, leaf) for site in ("attn", "ffn") for leaf in ("fn", "base", "scale"))
_CONVS = tuple(f"self_attn.{x}_conv1d.weight" for x in "qkv")


def _kernel_inside(shape: tuple[int, ...]) -> tuple[int, ...]:
    """`[channels, 1, kernel]` as `[channels, kernel, 1]`."""
    return (shape[0], shape[2], shape[1]) if len(shape) == 3 else shape


PUBLISHED = "published"
"""The name of no dialect at all: the release's own spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One writer's spelling.

    Attributes:
        name: What reports and `synth --dialect` call it.
        moves: How its names and shapes differ from the published ones; each may be absent.
        prefixes: What stands in the place of a group's published prefix.
        head: The output head's name without ".weight", where it differs.
        read_by: Who loads it.
        lost_on: Who drops it or refuses it.
    """

    name: str
    moves: tuple[Move, ...] = ()
    prefixes: Mapping[Group, str] = field(default_factory=dict)
    head: str = "lm_head"
    read_by: str
    lost_on: str


TRANSFORMERS = Dialect(
    name="transformers",
    moves=(
        *(Rename(kind="hyper_connection", old=f"hc_{site}_{leaf}", new=f"{site}_hc.{leaf}") for site, leaf in _HC),
        *(
            Rename(kind="forget_gate", old=f"self_attn.{leaf}", new=f"self_attn.forget_gate.{leaf}")
            for leaf in _FORGET_GATE
        ),
        Concat(kind="fused_conv", old=_CONVS, new="self_attn.conv1d.weight"),
        Stack(kind="packed_experts", old=_GATE_UP, new="experts.gate_up_proj"),
        Stack(kind="packed_experts", old=("down_proj.weight",), new="experts.down_proj"),
    ),
    read_by="transformers 5.x, which maps these module names itself",
    lost_on="engines that go by published names drop them silently (sgl-project/sglang issue 38618)",
)
"""Source: transformers 5.23 conversion_mapping.py; sgl-project/sglang issue 38618."""


def _bare(shape: tuple[int, ...]) -> tuple[int, ...]:
    """`[1, 1, heads, 1]` as `[heads]`."""
    return tuple(size for size in shape if size != 1) if len(shape) == 4 else shape


def _broadcast(shape: tuple[int, ...]) -> tuple[int, ...]:
    """`[heads]` as `[1, 1, heads, 1]`."""
    return (1, 1, shape[0], 1) if len(shape) == 1 else shape


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A stack of matrices, each with rows and columns in the other's place."""
    return (shape[0], shape[2], shape[1]) if len(shape) == 3 else shape


TURNED_EXPERTS: tuple[Move, ...] = tuple(
    Reshape(kind="turned_experts", leaf=f"experts.{leaf}", shape=_turned) for leaf in ("gate_up_proj", "down_proj")
)
"""gpt-oss stacks its experts `[experts, in, out]`, most others `[experts, out, in]`; converters do either."""

DECAY_SHAPES: tuple[Move, ...] = (
    Reshape(kind="decay_shape", leaf="self_attn.A_log", shape=_bare),
    Reshape(kind="decay_shape", leaf="self_attn.A_log", shape=_broadcast),
)
"""Kimi-Linear publishes `A_log` ready to broadcast, GLM-5.3-Flash as a vector; converters do either."""

MLX = Dialect(
    name="mlx",
    moves=(
        *(
            Stack(kind="switch_mlp", old=(f"{leaf}.weight",), new=f"switch_mlp.{leaf}.weight")
            for leaf in ("gate_proj", "up_proj", "down_proj")
        ),
        Absorb(kind="absorbed_kv_b"),
        *(Reshape(kind="conv_axis", leaf=leaf, shape=_kernel_inside) for leaf in _CONVS),
    ),
    prefixes={
        Group.TRUNK: "language_model.model.",
        Group.MTP: "language_model.model.",
        Group.VISION: "vision_tower.",
    },
    head="language_model.lm_head",
    read_by="mlx-lm and mlx-vlm",
    lost_on="engines that go by published names refuse or drop them",
)
"""Source: Blaizzy/mlx-vlm mlx_vlm/models/glm5_next/glm5_next.py and language.py."""

MLX_FUSED: tuple[Move, ...] = (
    Concat(kind="fused_qkv", old=tuple(f"self_attn.{x}_proj.weight" for x in "qkv"), new="self_attn.qkv_proj.weight"),
    Concat(
        kind="fused_gates",
        old=tuple(f"self_attn.{x}_proj.weight" for x in ("f_a", "b", "g_a")),
        new="self_attn.fbg_a_proj.weight",
    ),
    Concat(
        kind="fused_qkv_a",
        old=("self_attn.q_a_proj.weight", "self_attn.kv_a_proj_with_mqa.weight"),
        new="self_attn.qkv_a_proj.weight",
    ),
    Stack(kind="switch_mlp", old=_GATE_UP, new="switch_mlp.gate_up_proj.weight"),
    Concat(kind="fused_gate_up", old=_GATE_UP, new="gate_up_proj.weight"),
    Concat(kind="fused_conv", old=_CONVS, new="self_attn.qkv_conv.conv.weight"),
    Reshape(kind="conv_axis", leaf="self_attn.qkv_conv.conv.weight", shape=_kernel_inside),
    Reshape(kind="conv_axis", leaf="self_attn.conv1d.weight", shape=_kernel_inside),
)
"""What mlx-vlm fuses when it loads, and some files then hold."""

TEXT_ONLY = Dialect(
    name="text-only",
    prefixes={Group.TRUNK: "model.", Group.MTP: "model."},
    read_by="loaders of the text model alone",
    lost_on="loaders of the multimodal model find no text weights",
)

SPLIT = Dialect(
    name="split-experts",
    moves=(
        Unstack(kind="split_experts", old="experts.gate_up_proj", new=_GATE_UP),
        Unstack(kind="split_experts", old="experts.down_proj", new=("down_proj.weight",)),
    ),
    read_by="loaders that take experts one by one: transformers writes them so, and FP8 builds store them so",
    lost_on="loaders that look for the stacked names only",
)
"""Experts one by one where the release stacks them. Source: transformers 5.23 save_pretrained."""

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (TRANSFORMERS, MLX, TEXT_ONLY, SPLIT)}
"""What `synth --dialect` can write."""

MOVES: tuple[tuple[str, Move], ...] = (
    *((TRANSFORMERS.name, move) for move in TRANSFORMERS.moves),
    *((MLX.name, move) for move in (*MLX.moves, *MLX_FUSED)),
    *((SPLIT.name, move) for move in SPLIT.moves),
    *((TRANSFORMERS.name, move) for move in (*DECAY_SHAPES, *TURNED_EXPERTS)),
)
"""Every move there is, with the writer it tells of, in the order they are looked for."""
