"""MLX: numbers of 2 to 8 bits in U32 words, with `scales` and, for affine modes, `biases`.

Bits and group follow from the shapes, tensor by tensor: releases mix them. Source:
ml-explore/mlx python/mlx/nn/layers/quantized.py and mlx/ops.cpp::quantize.
"""

from __future__ import annotations

from typing import Any

from modelbones.dtypes import DType
from modelbones.quant.form import Form, Sidecar, in_bits, per_group
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role

AFFINE = "mlx-affine"
MX = "mlx-mx"
GROUPS = (64, 128, 32)
_FACTORS = (DType.BF16, DType.F16, DType.F32)


def _affine(bits: int, group: int) -> Form:
    shapes = (per_group(group),)
    return Form(
        scheme=AFFINE,
        dtypes=(DType.U32,),
        shape=in_bits(bits),
        sidecars=tuple(Sidecar(leaf=leaf, dtypes=_FACTORS, shapes=shapes) for leaf in ("scales", "biases")),
    )


def _mx(bits: int, group: int) -> Form:
    return Form(
        scheme=MX,
        dtypes=(DType.U32,),
        shape=in_bits(bits),
        sidecars=(Sidecar(leaf="scales", dtypes=(DType.U8,), shapes=(per_group(group),)),),
    )


FORMS = (
    *(_affine(bits, group) for group in GROUPS for bits in (4, 8, 6, 5, 3, 2)),
    _mx(4, 32),
    _mx(8, 32),
    _mx(4, 16),
)


def declare(_: list[str]) -> dict[str, Any]:
    """MLX's `quantization`: a module with `scales` beside it is quantised, so none is named."""
    return {"group_size": GROUPS[0], "bits": 4, "mode": "affine"}


RECIPES = (
    Recipe(
        scheme=AFFINE,
        form=FORMS[0],
        roles=frozenset({Role.EXPERTS, Role.SHARED_EXPERTS, Role.DENSE_MLP, Role.LM_HEAD}),
        skips=(),
        declare=declare,
        key="quantization",
    ),
)
