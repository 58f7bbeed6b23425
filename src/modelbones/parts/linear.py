"""Short spellings of the tensors every part is made of."""

from __future__ import annotations

from modelbones.dtypes import DType
from modelbones.ranks import Axis, Split, split
from modelbones.tensors import FLOAT, Permitted, Role, TensorPattern

HYPER_CONNECTION_RISK = (
    "rounding it to BF16 was measured to cut top-1 agreement from 18/23 to 1/23 on a converted build"
)
KEPT_F32_RISK = "it is kept in F32 by the release and by transformers; BF16 rounds it"


def small(risk: str) -> Permitted:
    """The permitted types of a small tensor kept in F32: BF16 loads, with this risk."""
    return Permitted(dtypes=(DType.F32,), risky=(DType.BF16,), risk=risk)


KEPT_F32 = small(KEPT_F32_RISK)
"""`A_log`, `dt_bias` and `e_score_correction_bias`.

Source: transformers 5.23 modeling_glm5_next.py::_keep_in_fp32_modules_strict.
"""

HYPER_CONNECTION_F32 = small(HYPER_CONNECTION_RISK)
"""`hc_*_base` and `hc_*_scale`. Source: Blaizzy/mlx-vlm issue 2053."""


def matrix(name: str, rows: int, columns: int, role: Role, *, cut: tuple[Split, ...] = ()) -> TensorPattern:
    """A linear layer's weight, `[rows, columns]` = [out, in]."""
    return TensorPattern(name=f"{name}.weight", shape=(rows, columns), role=role, split=cut)


def out_heads(size: int, num_heads: int) -> tuple[Split, ...]:
    """Output rows cut by whole heads."""
    return split(Axis.HEADS, 0, size, num_heads)


def in_heads(size: int, num_heads: int) -> tuple[Split, ...]:
    """Input columns cut by whole heads."""
    return split(Axis.HEADS, 1, size, num_heads)


def vector(
    name: str, size: int, role: Role, *, cut: tuple[Split, ...] = (), permitted: Permitted = FLOAT
) -> TensorPattern:
    """A norm's weight, a bias or another vector, `[size]`; the name is the whole leaf."""
    return TensorPattern(name=name, shape=(size,), role=role, split=cut, permitted=permitted)
