"""Published builds of GLM-5.3-Flash, made from the hand-made list by each producer's own rule.

Counts and bytes are those of the builds' own headers or index; see each test for its source.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.release import LAYERS, Stores, bf16

Shape = tuple[int, ...]
Pack = Callable[[str, Shape], Stores]
EXPERT = re.compile(re.escape(LAYERS) + r"(\d+)\.mlp\.experts\.\d+\.\w+_proj\.weight")
DENSE = re.compile(re.escape(LAYERS) + r"[012]\.mlp\.\w+_proj\.weight")


def packed(pack: Pack, is_packed: Callable[[str], bool], stores: Stores | None = None) -> Stores:
    """`stores`, the unquantised release when none are given, with each chosen weight packed."""
    result: Stores = {}
    for name, (dtype, shape) in (bf16() if stores is None else stores).items():
        result.update(pack(name.removesuffix("weight"), shape) if is_packed(name) else {name: (dtype, shape)})
    return result


def experts_of(*layers: int) -> Callable[[str], bool]:
    """Whether a name is a routed expert's of one of these layers."""

    def is_meant(name: str) -> bool:
        match = EXPERT.fullmatch(name)
        return match is not None and int(match[1]) in layers

    return is_meant


def nvfp4(base: str, shape: Shape, *, has_input: bool = False) -> Stores:
    """modelopt: two numbers a byte, a scale for each 16, one scale for all."""
    rows, columns = shape
    stores: Stores = {
        f"{base}weight": ("U8", (rows, columns // 2)),
        f"{base}weight_scale": ("F8_E4M3", (rows, columns // 16)),
        f"{base}weight_scale_2": ("F32", ()),
    }
    return {**stores, f"{base}input_scale": ("F32", ())} if has_input else stores


def nvfp4_with_input(base: str, shape: Shape) -> Stores:
    """modelopt with a scale for activations."""
    return nvfp4(base, shape, has_input=True)


def nvfp4_compressed(base: str, shape: Shape) -> Stores:
    """compressed-tensors: the same numbers under other names; the global scale is the reciprocal."""
    rows, columns = shape
    return {
        f"{base}weight_packed": ("U8", (rows, columns // 2)),
        f"{base}weight_scale": ("F8_E4M3", (rows, columns // 16)),
        f"{base}weight_global_scale": ("F32", (1,)),
    }


def nvfp4_compressed_with_input(base: str, shape: Shape) -> Stores:
    """compressed-tensors with a scale for activations."""
    return {**nvfp4_compressed(base, shape), f"{base}input_global_scale": ("F32", (1,))}


def fp8_blocks(base: str, shape: Shape) -> Stores:
    """Block FP8 as compressed-tensors writes it: a BF16 factor for each 128 x 128."""
    rows, columns = shape
    return {
        f"{base}weight": ("F8_E4M3", shape),
        f"{base}weight_scale": ("BF16", (-(-rows // 128), -(-columns // 128))),
    }


def mxfp4(base: str, shape: Shape) -> Stores:
    """Quark: two numbers a byte, an E8M0 exponent for each 32."""
    rows, columns = shape
    return {f"{base}weight": ("U8", (rows, columns // 2)), f"{base}weight_scale": ("U8", (rows, columns // 32))}


def mxfp8(base: str, shape: Shape) -> Stores:
    """One byte a number, an E8M0 exponent for each 32."""
    rows, columns = shape
    return {f"{base}weight": ("F8_E4M3", shape), f"{base}weight_scale": ("U8", (rows, columns // 32))}


def mlx_affine(base: str, shape: Shape, *, bits: int = 4, group: int = 64) -> Stores:
    """MLX: U32 words, a scale and a bias for each group."""
    rows, columns = shape
    stores: Stores = {f"{base}weight": ("U32", (rows, columns * bits // 32))}
    return {**stores, **{f"{base}{leaf}": ("BF16", (rows, columns // group)) for leaf in ("scales", "biases")}}


def retyped(stores: Stores, dtype: str, is_meant: Callable[[str], bool]) -> Stores:
    """`stores` with some tensors in another type."""
    return {name: (dtype if is_meant(name) else kept, shape) for name, (kept, shape) in stores.items()}


def without(stores: Stores, is_meant: Callable[[str], bool]) -> Stores:
    """`stores` without some tensors."""
    return {name: stored for name, stored in stores.items() if not is_meant(name)}


def transformers_names(stores: Stores) -> Stores:
    """The names a transformers model has in memory, and what it fuses; layer 45 is dropped."""
    result: Stores = {}
    for name, (dtype, shape) in stores.items():
        if name.startswith(f"{LAYERS}45."):
            continue
        spelled = re.sub(r"\.hc_(attn|ffn)_(fn|base|scale)$", r".\1_hc.\2", name)
        spelled = re.sub(
            r"self_attn\.(f_a_proj\.weight|f_b_proj\.weight|dt_bias|A_log)$", r"self_attn.forget_gate.\1", spelled
        )
        conv = re.fullmatch(r"(.*self_attn\.)[qkv]_conv1d\.weight", spelled)
        expert = re.fullmatch(r"(.*mlp\.experts\.)\d+\.(gate|up|down)_proj\.weight", spelled)
        if conv:
            result[f"{conv[1]}conv1d.weight"] = (dtype, (3 * shape[0], *shape[1:]))
        elif expert and expert[2] == "down":
            result[f"{expert[1]}down_proj"] = (dtype, (288, *shape))
        elif expert:
            result[f"{expert[1]}gate_up_proj"] = (dtype, (288, 2 * shape[0], shape[1]))
        else:
            result[spelled] = (dtype, shape)
    return result
