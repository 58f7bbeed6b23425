"""Integers of 4 or 8 bits in I32 words: compressed-tensors' packing, classic GPTQ and AWQ.

compressed-tensors packs along the input dimension and its zero points along the output;
GPTQ stores `[in, out]` packed along the input, AWQ packed along the output. Source:
vllm-project/compressed-tensors src/compressed_tensors/compressors/quantized_compressors/
pack_quantized.py; AutoGPTQ/AutoGPTQ auto_gptq/nn_modules/qlinear; casper-hansen/AutoAWQ
awq/modules/linear/gemm.py.
"""

from __future__ import annotations

from typing import Any

from modelbones.dtypes import DType
from modelbones.quant.form import Form, Shape, ShapeRule, Sidecar, per_group, per_row
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role
from modelbones.units import ceil_div

INT4 = "int4-pack"
INT8 = "int8-pack"
GPTQ4 = "gptq-int4"
GPTQ8 = "gptq-int8"
AWQ = "awq-int4"
GROUPS = (128, 64, 32)
_FACTORS = (DType.BF16, DType.F16, DType.F32)


def _words(bits: int) -> ShapeRule:
    """Columns in I32 words, a short last word filled up."""

    def shape(logical: Shape) -> Shape | None:
        return (*logical[:-1], ceil_div(logical[-1], 32 // bits)) if len(logical) >= 2 else None

    return shape


def _zero_points(bits: int, group: int | None) -> ShapeRule:
    """Packed along the rows, one for each group; for each row where there are no groups."""

    def shape(logical: Shape) -> Shape | None:
        if len(logical) < 2 or (group is not None and logical[-1] % group):
            return None
        *lead, rows, columns = logical
        return (*lead, ceil_div(rows, 32 // bits), 1 if group is None else columns // group)

    return shape


def _two(logical: Shape) -> Shape | None:
    return (2,) if len(logical) == 2 else None


def _columns(logical: Shape) -> Shape:
    return logical[-1:]


def _pack(scheme: str, bits: int, group: int | None) -> Form:
    scales = per_row if group is None else per_group(group)
    zero_points = (_zero_points(bits, group),)
    return Form(
        scheme=scheme,
        leaf="weight_packed",
        dtypes=(DType.I32,),
        shape=_words(bits),
        sidecars=(
            Sidecar(leaf="weight_scale", dtypes=_FACTORS, shapes=(scales,)),
            Sidecar(leaf="weight_shape", dtypes=(DType.I64, DType.I32), shapes=(_two,)),
            Sidecar(leaf="weight_zero_point", dtypes=(DType.I32,), shapes=zero_points, is_required=False),
            Sidecar(leaf="weight_g_idx", dtypes=(DType.I32,), shapes=(_columns,), is_required=False),
        ),
    )


def _turned(rows_per: int, columns_per: int) -> ShapeRule:
    """`[in / rows_per, out / columns_per]` of a logical `[out, in]`; both must divide."""

    def shape(logical: Shape) -> Shape | None:
        if len(logical) != 2 or logical[1] % rows_per or logical[0] % columns_per:
            return None
        return logical[1] // rows_per, logical[0] // columns_per

    return shape


def _classic(scheme: str, *, weight: ShapeRule, zeros_per: int, group: int) -> Form:
    return Form(
        scheme=scheme,
        leaf="qweight",
        dtypes=(DType.I32,),
        shape=weight,
        sidecars=(
            Sidecar(leaf="scales", dtypes=(DType.F16, DType.BF16, DType.F32), shapes=(_turned(group, 1),)),
            Sidecar(leaf="qzeros", dtypes=(DType.I32,), shapes=(_turned(group, zeros_per),)),
            Sidecar(leaf="g_idx", dtypes=(DType.I32,), shapes=(_columns,), is_required=False),
        ),
    )


def _of_group(group: int) -> tuple[Form, ...]:
    return (
        _pack(INT4, 4, group),
        _pack(INT8, 8, group),
        _classic(GPTQ4, weight=_turned(8, 1), zeros_per=8, group=group),
        _classic(GPTQ8, weight=_turned(4, 1), zeros_per=4, group=group),
        _classic(AWQ, weight=_turned(1, 8), zeros_per=8, group=group),
    )


FORMS = (*(form for group in GROUPS for form in _of_group(group)), _pack(INT4, 4, None), _pack(INT8, 8, None))
"""One for each group size, so that what stands beside a weight has one size in all of it."""


def declare(excluded: list[str], *, bits: int) -> dict[str, Any]:
    """compressed-tensors' `quantization_config` for packed integers."""
    weights = {"num_bits": bits, "type": "int", "group_size": GROUPS[0], "strategy": "group", "symmetric": True}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"format": "pack-quantized", "targets": ["Linear"], "weights": weights}},
        "ignore": sorted(excluded),
    }


def declare_gptq(_: list[str]) -> dict[str, Any]:
    """AutoGPTQ's `quantization_config`; it names no modules: what is packed is stored so."""
    return {"quant_method": "gptq", "bits": 4, "group_size": GROUPS[0], "sym": True, "desc_act": False}


def declare_awq(excluded: list[str]) -> dict[str, Any]:
    """AutoAWQ's `quantization_config` that leaves the modules `excluded` alone."""
    return {
        "quant_method": "awq",
        "bits": 4,
        "group_size": GROUPS[0],
        "zero_point": True,
        "version": "gemm",
        "modules_to_not_convert": sorted(excluded),
    }


_EXPERTS = frozenset({Role.EXPERTS})
RECIPES = (
    Recipe(scheme=INT4, form=FORMS[0], roles=_EXPERTS, skips=(), declare=lambda names: declare(names, bits=4)),
    Recipe(scheme=INT8, form=FORMS[1], roles=_EXPERTS, skips=(), declare=lambda names: declare(names, bits=8)),
    Recipe(scheme=GPTQ4, form=FORMS[2], roles=_EXPERTS, skips=(), declare=declare_gptq),
    Recipe(scheme=AWQ, form=FORMS[4], roles=_EXPERTS, skips=(), declare=declare_awq),
)
