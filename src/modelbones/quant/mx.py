"""Microscaling: E2M1 or E4M3 numbers with one power-of-two factor (E8M0) for each 32 columns.

The experts of gpt-oss are stacked and turned, `_blocks` and `_scales` behind their names. Source:
OCP Microscaling Formats v1.0; transformers 5.23 integrations/mxfp4.py; vllm-project/vllm pull
54556 and sgl-project/sglang pull 38999 for Quark's names; vllm-project/compressed-tensors for
the packed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.dtypes import DType
from modelbones.quant.claim import Claim, everything_but
from modelbones.quant.exclusions import listed, wildcard_match
from modelbones.quant.form import Form, Shape, Sidecar, packed, per_group, same
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role

MXFP4 = "mxfp4"
MXFP4_PACKED = "mxfp4-pack"
MXFP4_BLOCKS = "mxfp4-blocks"
MXFP8 = "mxfp8"
GROUP = 32

_SCALES = Sidecar(leaf="weight_scale", dtypes=(DType.U8, DType.F8_E8M0), shapes=(per_group(GROUP),))


def _stacked_blocks(logical: Shape) -> Shape | None:
    """`[experts, in, out]` as `[experts, out, in / 32, 16]`: 16 bytes for each 32 numbers of a row."""
    if len(logical) != 3 or logical[1] % GROUP:
        return None
    experts, columns, rows = logical
    return experts, rows, columns // GROUP, GROUP // 2


def _stacked_scales(logical: Shape) -> Shape | None:
    """`[experts, in, out]` as `[experts, out, in / 32]`."""
    blocks = _stacked_blocks(logical)
    return None if blocks is None else blocks[:3]


FORMS = (
    Form(scheme=MXFP4, dtypes=(DType.U8,), shape=packed(2), sidecars=(_SCALES,)),
    Form(scheme=MXFP4_PACKED, leaf="weight_packed", dtypes=(DType.U8,), shape=packed(2), sidecars=(_SCALES,)),
    Form(
        scheme=MXFP4_BLOCKS,
        leaf="blocks",
        dtypes=(DType.U8,),
        shape=_stacked_blocks,
        sidecars=(Sidecar(leaf="scales", dtypes=(DType.U8,), shapes=(_stacked_scales,)),),
    ),
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


def claims(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """gpt-oss: every stack of experts, and what `modules_to_not_convert` does not name."""
    entries = listed(quantization.get("modules_to_not_convert"))
    schemes = frozenset({MXFP4_BLOCKS})
    return everything_but(wildcard_match(entries), schemes=schemes, place=place, entries=entries)


def declare_blocks(excluded: list[str]) -> dict[str, Any]:
    """The `quantization_config` of gpt-oss that leaves the modules `excluded` alone."""
    return {"quant_method": "mxfp4", "modules_to_not_convert": sorted(excluded)}


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
    Recipe(scheme=MXFP4_BLOCKS, form=FORMS[2], roles=frozenset({Role.EXPERTS}), skips=(), declare=declare_blocks),
    Recipe(scheme=MXFP8, form=FORMS[3], roles=frozenset({Role.EXPERTS}), skips=(), declare=declare_mxfp8),
)
