"""Microscaling: E2M1 or E4M3 numbers with one power-of-two factor (E8M0) for each 32 columns.

Source: OCP Microscaling Formats v1.0; vllm-project/vllm pull 54556 and sgl-project/sglang pull
38999 for Quark's names; vllm-project/compressed-tensors for the packed ones.
"""

from __future__ import annotations

from typing import Any

from modelbones.dtypes import DType
from modelbones.quant.form import Form, Sidecar, packed, per_group, same
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role

MXFP4 = "mxfp4"
MXFP4_PACKED = "mxfp4-pack"
MXFP8 = "mxfp8"
GROUP = 32

_SCALES = Sidecar(leaf="weight_scale", dtypes=(DType.U8, DType.F8_E8M0), shapes=(per_group(GROUP),))

FORMS = (
    Form(scheme=MXFP4, dtypes=(DType.U8,), shape=packed(2), sidecars=(_SCALES,)),
    Form(scheme=MXFP4_PACKED, leaf="weight_packed", dtypes=(DType.U8,), shape=packed(2), sidecars=(_SCALES,)),
    Form(scheme=MXFP8, dtypes=(DType.F8_E4M3,), shape=same, sidecars=(_SCALES,)),
)


def declare_quark(excluded: list[str]) -> dict[str, Any]:
    """Quark's `quantization_config` that excludes the modules `excluded`."""
    weight = {"dtype": "fp4", "qscheme": "per_group", "group_size": GROUP, "scale_format": "e8m0"}
    return {
        "quant_method": "quark",
        "global_quant_config": {"weight": weight},
        "exclude": sorted(excluded),
        "export": {"pack_method": "reorder"},
    }


def declare_mxfp8(excluded: list[str]) -> dict[str, Any]:
    """modelopt's `quantization_config` for MXFP8 that ignores the modules `excluded`."""
    weights = {"num_bits": 8, "type": "float", "group_size": GROUP}
    return {
        "quant_method": "modelopt",
        "quant_algo": "MXFP8",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": sorted(excluded),
    }


RECIPES = (
    Recipe(scheme=MXFP4, form=FORMS[0], roles=frozenset({Role.EXPERTS}), skips=(), declare=declare_quark),
    Recipe(scheme=MXFP8, form=FORMS[2], roles=frozenset({Role.EXPERTS}), skips=(), declare=declare_mxfp8),
)
