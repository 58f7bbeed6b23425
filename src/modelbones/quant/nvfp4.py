"""NVFP4: two E2M1 numbers a byte, an E4M3 factor for each 16 columns, one fp32 factor for all.

modelopt multiplies by `weight_scale_2`; compressed-tensors divides by `weight_global_scale`,
which is its reciprocal. Source: NVIDIA/Model-Optimizer modelopt/torch/quantization/qtensor/
nvfp4_tensor.py; vllm-project/compressed-tensors src/compressed_tensors/compressors/nvfp4.
"""

from __future__ import annotations

from typing import Any

from modelbones.dtypes import DType
from modelbones.quant.form import Form, Sidecar, one, packed, per_group, scalar
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role

MODELOPT = "nvfp4"
COMPRESSED_TENSORS = "nvfp4-pack"
GROUP = 16

_SCALES = Sidecar(leaf="weight_scale", dtypes=(DType.F8_E4M3,), shapes=(per_group(GROUP),))


def _whole(leaf: str, *, is_required: bool) -> Sidecar:
    return Sidecar(leaf=leaf, dtypes=(DType.F32,), shapes=(scalar, one), is_required=is_required)


FORMS = (
    Form(
        scheme=MODELOPT,
        dtypes=(DType.U8,),
        shape=packed(2),
        sidecars=(_SCALES, _whole("weight_scale_2", is_required=True), _whole("input_scale", is_required=False)),
    ),
    Form(
        scheme=COMPRESSED_TENSORS,
        leaf="weight_packed",
        dtypes=(DType.U8,),
        shape=packed(2),
        sidecars=(
            _SCALES,
            _whole("weight_global_scale", is_required=True),
            _whole("input_global_scale", is_required=False),
        ),
    ),
)


def declare_modelopt(excluded: list[str]) -> dict[str, Any]:
    """modelopt's `quantization_config` that ignores the modules `excluded`."""
    return {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": GROUP}}
        },
        "ignore": sorted(excluded),
    }


def declare_compressed(excluded: list[str]) -> dict[str, Any]:
    """compressed-tensors' `quantization_config` that ignores the modules `excluded`."""
    weights = {"num_bits": 4, "type": "float", "group_size": GROUP, "strategy": "tensor_group", "symmetric": True}
    return {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {"group_0": {"format": "nvfp4-pack-quantized", "targets": ["Linear"], "weights": weights}},
        "ignore": sorted(excluded),
    }


_EXPERTS = frozenset({Role.EXPERTS})
RECIPES = (
    Recipe(scheme=MODELOPT, form=FORMS[0], roles=_EXPERTS, skips=(), declare=declare_modelopt),
    Recipe(scheme=COMPRESSED_TENSORS, form=FORMS[1], roles=_EXPERTS, skips=(), declare=declare_compressed),
)
"""Routed experts only, as LibertAIDAI/GLM-5.3-Flash-NVFP4 and RedHatAI/GLM-5.3-Flash-NVFP4 do in the trunk."""
