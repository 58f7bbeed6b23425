"""The vision tower of the GLM family: a ViT with gated MLPs, merged 2 x 2 into the text width."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.parts.linear import matrix, vector
from modelbones.tensors import LAYER, Group, Role, TensorPattern

PREFIX = "model.visual."


@dataclass(frozen=True, slots=True, kw_only=True)
class GlmVisionSizes:
    """The tower's widths, in the words of its `vision_config`."""

    depth: int
    hidden_size: int
    num_heads: int
    intermediate_size: int
    in_channels: int
    patch_size: int
    temporal_patch_size: int
    spatial_merge_size: int
    out_hidden_size: int
    projection_intermediate_size: int
    attention_bias: bool


def glm_vision(sizes: GlmVisionSizes) -> tuple[TensorPattern, ...]:
    """Every tensor of the tower, 14 a block and 11 around them.

    Source: transformers 5.23 modeling_glm5_next.py::Glm5NextVisionModel; zai-org/GLM-5.3-Flash
    model.safetensors.index.json.
    """
    blocks = tuple(range(sizes.depth))
    return (
        *(pattern.placed(f"{PREFIX}blocks.{LAYER}.", layers=blocks, group=Group.VISION) for pattern in _block(sizes)),
        *(pattern.placed(PREFIX, group=Group.VISION) for pattern in _around(sizes)),
    )


def _linear(name: str, rows: int, columns: int, *, bias: bool = True) -> tuple[TensorPattern, ...]:
    weight = matrix(name, rows, columns, Role.VISION)
    return (weight, vector(f"{name}.bias", rows, Role.VISION)) if bias else (weight,)


def _block(sizes: GlmVisionSizes) -> tuple[TensorPattern, ...]:
    width, inner, head_dim = sizes.hidden_size, sizes.intermediate_size, sizes.hidden_size // sizes.num_heads
    return (
        vector("norm1.weight", width, Role.VISION),
        vector("norm2.weight", width, Role.VISION),
        *_linear("attn.qkv", 3 * width, width, bias=sizes.attention_bias),
        *_linear("attn.proj", width, width, bias=sizes.attention_bias),
        vector("attn.q_norm.weight", head_dim, Role.VISION),
        vector("attn.k_norm.weight", head_dim, Role.VISION),
        *_linear("mlp.gate_proj", inner, width, bias=sizes.attention_bias),
        *_linear("mlp.up_proj", inner, width, bias=sizes.attention_bias),
        *_linear("mlp.down_proj", width, inner, bias=sizes.attention_bias),
    )


def _around(sizes: GlmVisionSizes) -> tuple[TensorPattern, ...]:
    width, out, inner = sizes.hidden_size, sizes.out_hidden_size, sizes.projection_intermediate_size
    patch = (width, sizes.in_channels, sizes.temporal_patch_size, sizes.patch_size, sizes.patch_size)
    merge = (out, width, sizes.spatial_merge_size, sizes.spatial_merge_size)
    return (
        TensorPattern(name="patch_embed.proj.weight", shape=patch, role=Role.VISION),
        vector("patch_embed.proj.bias", width, Role.VISION),
        vector("post_layernorm.weight", width, Role.VISION),
        TensorPattern(name="downsample.weight", shape=merge, role=Role.VISION),
        vector("downsample.bias", out, Role.VISION),
        *_linear("merger.proj", out, out, bias=False),
        vector("merger.post_projection_norm.weight", out, Role.VISION),
        vector("merger.post_projection_norm.bias", out, Role.VISION),
        *_linear("merger.gate_proj", inner, out, bias=False),
        *_linear("merger.up_proj", inner, out, bias=False),
        *_linear("merger.down_proj", out, inner, bias=False),
    )
