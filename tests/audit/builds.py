"""Builds in the manner of published ones, at the size of the shrunk release, with their producers' own claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelbones.quant.form import Form, base_of, stored_name
from modelbones.quant.registry import FORMS, RECIPES
from tests import release
from tests.release import Stores
from tests.variants import DENSE, EXPERT

PLAIN = release.bf16(release.TINY)
Chooser = Callable[[str], Form | None]


@dataclass(frozen=True)
class Build:
    """One build.

    Attributes:
        stores: What it stores.
        claim: What its config says.
        form_of: The form of each weight of the unquantised release; None for a plain one.
        names_no_modules: Whether the config leaves it to what is stored which modules are packed.
        is_silent: Whether it claims nothing at all that a tensor could contradict.
    """

    stores: Stores
    claim: dict[str, Any]
    form_of: Chooser
    names_no_modules: bool = False
    is_silent: bool = False


def form(scheme: str, sidecar: str) -> Form:
    """The form of a scheme that has this sidecar."""
    return next(f for f in FORMS if f.scheme == scheme and any(s.leaf == sidecar for s in f.sidecars))


NVFP4 = form("nvfp4", "weight_scale_2")
NVFP4_PACK = form("nvfp4-pack", "weight_global_scale")
MXFP4 = form("mxfp4", "weight_scale")
MXFP8 = form("mxfp8", "weight_scale")
FP8 = form("fp8", "weight_scale_inv")
FP8_BLOCKS = form("fp8", "weight_scale")
INT4 = form("int4-pack", "weight_zero_point")
MLX4 = form("mlx-affine", "biases")
MLX8 = [f for f in FORMS if f.scheme == "mlx-affine"][1]
MLX_MX = form("mlx-mx", "scales")


def layer_of(name: str) -> int | None:
    """The layer of a routed expert's weight; None for any other name."""
    match = EXPERT.fullmatch(name)
    return int(match[1]) if match else None


def stored(form_of: Chooser, *, with_optional: bool = False) -> Stores:
    """The shrunk release with each weight in its form."""
    stores: Stores = {}
    for name, (dtype, shape) in PLAIN.items():
        chosen = form_of(name)
        if chosen is None:
            stores[name] = (dtype, shape)
            continue
        packed = chosen.shape(shape)
        assert packed is not None
        stores[stored_name(name, chosen.leaf)] = (chosen.dtypes[0].value, packed)
        for sidecar in chosen.sidecars:
            beside = sidecar.shapes[0](shape)
            if beside is not None and (sidecar.is_required or with_optional):
                stores[base_of(name) + sidecar.leaf] = (sidecar.dtypes[0].value, beside)
    return stores


def plain_modules(form_of: Chooser) -> list[str]:
    """Names, without ".weight", of all that is left alone."""
    return [name.removesuffix(".weight") for name in PLAIN if form_of(name) is None]


def experts(**by_layer: Form) -> Chooser:
    """Routed experts of trunk ("trunk") and MTP layer ("mtp"), each group in its form."""

    def form_of(name: str) -> Form | None:
        layer = layer_of(name)
        return None if layer is None else by_layer.get("mtp" if layer == release.TINY.layers else "trunk")

    return form_of


def nvidia_chooser(name: str) -> Form | None:
    return NVFP4 if DENSE.fullmatch(name) else experts(trunk=NVFP4)(name)


NVIDIA = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "ignore": [
        "lm_head",
        "model.visual*",
        "model.language_model.layers.*.self_attn*",
        *(f"model.language_model.layers.{layer}.mlp.gate" for layer in (3, 4)),
        *(f"model.language_model.layers.{layer}.mlp.shared_experts*" for layer in (3, 4)),
        "model.language_model.layers.5*",
        "model.layers.5*",
    ],
}

redhat_chooser = experts(trunk=NVFP4_PACK, mtp=FP8_BLOCKS)
REDHAT = {
    "quant_method": "compressed-tensors",
    "format": "mixed-precision",
    "config_groups": {
        "group_0": {
            "format": "nvfp4-pack-quantized",
            "targets": [r"re:.*layers\.[34]\.mlp\.experts\.\d+\.(gate|up|down)_proj$"],
            "weights": {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"},
        },
        "group_1": {
            "format": "float-quantized",
            "targets": [r"re:.*layers\.5\.mlp\.experts\.\d+\.(gate|up|down)_proj$"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]},
        },
    },
    "ignore": ["lm_head", "re:.*visual.*"],
}

spark_chooser = experts(trunk=NVFP4, mtp=MXFP8)
SPARK = {
    "quant_method": "modelopt",
    "quant_algo": "MIXED_PRECISION",
    "ignore": ["lm_head", "model.visual*"],
    "quantized_layers": {
        **{f"model.language_model.layers.{layer}.mlp.experts": {"quant_algo": "NVFP4"} for layer in (3, 4)},
        "model.language_model.layers.5.mlp.experts": {"quant_algo": "MXFP8", "group_size": 32},
    },
}


def amd_chooser(name: str) -> Form | None:
    """Experts of the trunk in MXFP4, of the MTP layer in block FP8, as Quark spells its scale."""
    return experts(trunk=MXFP4, mtp=FP8_BLOCKS)(name)


def quark_claim(form_of: Chooser) -> dict[str, Any]:
    return {
        "quant_method": "quark",
        "global_quant_config": {"weight": [{"dtype": "fp4", "qscheme": "per_group", "group_size": 32}]},
        "layer_quant_config": {"*layers.5.mlp.experts.*": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_block"}}},
        "exclude": plain_modules(form_of),
    }


def mlx_chooser(name: str) -> Form | None:
    """Mixed bits, and one layer of experts in a mode without biases."""
    if name == "lm_head.weight":
        return MLX8
    layer = layer_of(name)
    return None if layer is None else MLX_MX if layer == 4 else MLX4


MLX = {
    "group_size": 64,
    "bits": 4,
    "mode": "affine",
    "lm_head": {"group_size": 64, "bits": 8},
    **{name.removesuffix(".weight"): False for name in PLAIN if name.endswith("kv_b_proj.weight")},
}


def from_recipe(scheme: str) -> Build:
    """What the package's own recipe for a scheme packs, written by hand."""
    recipe = RECIPES[scheme]

    def form_of(name: str) -> Form | None:
        if scheme == "fp8":
            return recipe.form if release.is_fp8(name, release.TINY) else None
        return recipe.form if layer_of(name) is not None else None

    return Build(
        stored(form_of),
        recipe.declare(plain_modules(form_of)),
        form_of,
        names_no_modules=scheme.startswith(("gptq", "mlx")),
        is_silent=scheme.startswith("mlx"),
    )


asymmetric_chooser = experts(trunk=INT4, mtp=INT4)

BUILDS: dict[str, Build] = {
    "nvidia": Build(stored(nvidia_chooser, with_optional=True), NVIDIA, nvidia_chooser),
    "redhat": Build(stored(redhat_chooser, with_optional=True), REDHAT, redhat_chooser),
    "spark": Build(stored(spark_chooser), SPARK, spark_chooser),
    "amd": Build(stored(amd_chooser), quark_claim(amd_chooser), amd_chooser),
    "asymmetric": Build(
        stored(asymmetric_chooser, with_optional=True), from_recipe("int4-pack").claim, asymmetric_chooser
    ),
    "mlx": Build(stored(mlx_chooser), MLX, mlx_chooser, names_no_modules=True),
    **{scheme: from_recipe(scheme) for scheme in RECIPES if scheme != "mxfp4-blocks"},
}
"""mxfp4-blocks packs stacks of experts only, which this family has none of."""
