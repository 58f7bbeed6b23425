"""Which form a stored weight is in, judged from its type, its shape and what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from modelbones.audit.bound import Wrong
from modelbones.checkpoint.stored import Stored
from modelbones.dtypes import DType
from modelbones.findings import Code
from modelbones.quant.form import Form, Shape, Sidecar, stored_name
from modelbones.quant.form import base_of as base_of_weight
from modelbones.quant.registry import FORMS, PACKED_LEAVES, SIDECAR_LEAVES
from modelbones.tensors import TensorPattern

WEIGHT = "weight"


def base_of(name: str) -> str:
    """What stands before the leaf of a stored weight, plain or packed."""
    for leaf in PACKED_LEAVES:
        if name.endswith((f".{leaf}", f"_{leaf}")):
            return name[: -len(leaf)]
    return base_of_weight(name)


def leaf_of(name: str) -> str:
    """The leaf a stored weight has: a packed one, or "weight" when it has its contract's own name."""
    return next((leaf for leaf in PACKED_LEAVES if name.endswith((f".{leaf}", f"_{leaf}"))), WEIGHT)


def weight_of(name: str) -> str:
    """The contract's name of a stored weight."""
    leaf = leaf_of(name)
    if leaf == WEIGHT:
        return name
    stem = name[: -len(leaf) - 1]
    return stem if name.endswith(f"_{leaf}") else f"{stem}.{WEIGHT}"


def beside(left: Mapping[str, Stored], name: str) -> list[str]:
    """Names of the sidecars that stand beside a weight."""
    base = base_of(name)
    return [base + leaf for leaf in sorted(SIDECAR_LEAVES) if base + leaf in left]


class Favoured(NamedTuple):
    """What decides between forms that are equally likely.

    Attributes:
        schemes: What the claims say of this weight.
        sibling: How the others of its kind are stored.
    """

    schemes: frozenset[str]
    sibling: Form | None

    def lacks(self, form: Form) -> tuple[bool, bool]:
        """Whether each of them is silent about `form`; less is better."""
        return form.scheme not in self.schemes, form is not self.sibling


def choose(left: Mapping[str, Stored], name: str, stored: Stored, logical: Shape, favoured: Favoured) -> Form | None:
    """The form this weight is in most likely; None when no sidecar speaks for any.

    Best is what leaves least to be wrong; then what is favoured; then the form whose shapes
    are right, since they tell more than types.
    """
    base, leaf = base_of(name), leaf_of(name)
    ranked = []
    for order, form in enumerate(form for form in FORMS if form.leaf == leaf):
        there = [(sidecar, left[base + sidecar.leaf]) for sidecar in form.sidecars if base + sidecar.leaf in left]
        if not any(sidecar.is_required for sidecar, _ in there):
            continue
        lacking = sum(sidecar.is_required for sidecar in form.sidecars) - sum(s.is_required for s, _ in there)
        types = (stored.dtype not in form.dtypes) + sum(found.dtype not in each.dtypes for each, found in there)
        misfits = sum(not each.fits(logical, found.shape) for each, found in there)
        shapes = (form.shape(logical) != stored.shape) + misfits
        ranked.append((lacking + types + shapes, favoured.lacks(form), shapes, order, form))
    return min(ranked, key=lambda entry: entry[:-1])[-1] if ranked else None


def form_of(tensors: Mapping[str, Stored], weight: str, logical: Shape) -> Form | None:
    """The form a weight is stored in when nothing about it is wrong; None when it is plain, absent or wrong."""
    for leaf in (WEIGHT, *PACKED_LEAVES):
        name = stored_name(weight, leaf)
        stored = tensors.get(name)
        if stored is None:
            continue
        form = choose(tensors, name, stored, logical, Favoured(frozenset(), None))
        if form is None or stored.dtype not in form.dtypes or form.shape(logical) != stored.shape:
            continue
        sidecars = [(sidecar, tensors.get(base_of(name) + sidecar.leaf)) for sidecar in form.sidecars]
        if all(_is_right(sidecar, found, logical) for sidecar, found in sidecars):
            return form
    return None


def _is_right(sidecar: Sidecar, found: Stored | None, logical: Shape) -> bool:
    if found is None:
        return not sidecar.is_required
    return judge_sidecar(sidecar, "", found, logical) is None


def judge_sidecar(sidecar: Sidecar, name: str, stored: Stored, logical: Shape) -> Wrong | None:
    """What is wrong with a sidecar of a weight of shape `logical`; None when nothing is."""
    if stored.dtype not in sidecar.dtypes:
        return Wrong(Code.DTYPE, name, stored.dtype.value, either(sidecar.dtypes))
    if not sidecar.fits(logical, stored.shape):
        shapes = dict.fromkeys(str(list(shape)) for rule in sidecar.shapes if (shape := rule(logical)) is not None)
        return Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", " or ".join(shapes))
    return None


def accepts_sidecar(sidecar: Sidecar, logical: Shape) -> Callable[[Stored], bool]:
    """Whether a tensor could be this sidecar."""
    return lambda stored: stored.dtype in sidecar.dtypes and sidecar.fits(logical, stored.shape)


def accepts_weight(pattern: TensorPattern) -> Callable[[Stored], bool]:
    """Whether a tensor could be one of `pattern`, plain or in some form."""
    plain = frozenset((*pattern.permitted.dtypes, *pattern.permitted.risky))
    forms = FORMS if pattern.is_packable else ()

    def accepts(stored: Stored) -> bool:
        if stored.dtype in plain:
            return stored.shape == pattern.shape
        return any(stored.dtype in form.dtypes and form.shape(pattern.shape) == stored.shape for form in forms)

    return accepts


def types_beside(name: str, left: Mapping[str, Stored]) -> str:
    """The types a weight would have to go with the sidecars it has."""
    base = base_of(name)
    types = {
        dtype.value: None
        for form in FORMS
        if form.leaf == WEIGHT and any(base + s.leaf in left for s in form.sidecars if s.is_required)
        for dtype in form.dtypes
    }
    return " or ".join(types)


def types_of(pattern: TensorPattern, leaf: str) -> str:
    """The element types a tensor of `pattern` may have under this leaf."""
    permitted = pattern.permitted
    types = (*permitted.dtypes, *permitted.risky)
    if leaf in PACKED_LEAVES:
        types = tuple(dict.fromkeys(dtype for form in FORMS if form.leaf == leaf for dtype in form.dtypes))
    return either(types)


def either(types: Iterable[DType]) -> str:
    """Element types in words."""
    return " or ".join(dtype.value for dtype in types)
