"""`Form`: how a scheme stores one linear weight, as a weight and its sidecars.

Shapes are functions of the logical `[..., rows, columns]`; a stacked tensor's leading
dimensions stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from modelbones.dtypes import DType
from modelbones.units import ceil_div

Shape = tuple[int, ...]
ShapeRule = Callable[[Shape], Shape | None]
"""Logical shape -> stored shape; None when that shape cannot be stored so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A tensor that stands beside a packed weight.

    Attributes:
        leaf: What stands in the place of "weight" in its name.
        dtypes: Element types it may have; the first is what `synth` writes.
        shapes: Its shape, one rule for each way producers write it.
        is_required: Whether the weight cannot be decoded without it.
    """

    leaf: str
    dtypes: tuple[DType, ...]
    shapes: tuple[ShapeRule, ...]
    is_required: bool = True

    def fits(self, logical: Shape, stored: Shape) -> bool:
        """Whether `stored` is a shape it may have beside a weight of shape `logical`."""
        return any(rule(logical) == stored for rule in self.shapes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to store a linear weight.

    Attributes:
        scheme: The scheme it belongs to, as reports name it.
        dtypes: Element types of the stored weight; the first is what `synth` writes.
        shape: Shape of the stored weight.
        sidecars: What stands beside it, required ones first.
        leaf: What the stored weight is called in the place of "weight".
    """

    scheme: str
    dtypes: tuple[DType, ...]
    shape: ShapeRule
    sidecars: tuple[Sidecar, ...]
    leaf: str = "weight"


def base_of(weight: str) -> str:
    """What stands before the leaves of everything that stores one weight of this contract name.

    A stack of experts has no ".weight" behind its name; its leaves follow an underscore.
    """
    return weight[: -len("weight")] if weight.endswith(".weight") else f"{weight}_"


def stored_name(weight: str, leaf: str) -> str:
    """What a weight of this contract name is called where a form stores it as `leaf`."""
    return weight if leaf == "weight" else base_of(weight) + leaf


def same(shape: Shape) -> Shape:
    """One stored element for each logical one."""
    return shape


def scalar(_: Shape) -> Shape:
    """One value for the whole tensor, as a 0-dimensional tensor."""
    return ()


def one(_: Shape) -> Shape:
    """One value for the whole tensor, as a vector of one."""
    return (1,)


def blocks(rows: int, columns: int) -> ShapeRule:
    """One value for each block of `rows` x `columns`, a short last block included."""

    def shape(logical: Shape) -> Shape | None:
        if len(logical) < 2:
            return None
        *lead, height, width = logical
        return (*lead, ceil_div(height, rows), ceil_div(width, columns))

    return shape


def per_row(logical: Shape) -> Shape | None:
    """One value for each row, as a column."""
    return (*logical[:-1], 1) if len(logical) >= 2 else None


def in_bits(bits: int, word: int = 32) -> ShapeRule:
    """Columns packed densely at `bits` each into words of `word` bits; they must fill whole words."""

    def shape(logical: Shape) -> Shape | None:
        if len(logical) < 2 or logical[-1] * bits % word:
            return None
        return (*logical[:-1], logical[-1] * bits // word)

    return shape


def packed(per_element: int) -> ShapeRule:
    """`per_element` logical columns in each stored element; they must divide."""

    def shape(logical: Shape) -> Shape | None:
        if len(logical) < 2 or logical[-1] % per_element:
            return None
        return (*logical[:-1], logical[-1] // per_element)

    return shape


def per_group(size: int) -> ShapeRule:
    """One value for each `size` columns of a row; they must divide."""
    return packed(size)
