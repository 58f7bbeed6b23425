"""Which form a stored weight is in, judged from its type, its shape and what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from modelbones.audit.bound import Wrong
from modelbones.checkpoint.stored import Stored
from modelbones.findings import Code
from modelbones.quant.form import Form, Shape, Sidecar
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


def choose(
    left: Mapping[str, Stored], name: str, stored: Stored, forms: tuple[Form, ...], logical: Shape
) -> tuple[Form, ...]:
    """`forms` that this weight may be in, the best first; empty when no sidecar speaks for any."""
    base = base_of(name)
    ranked = []
    for order, form in enumerate(forms):
        there = [sidecar for sidecar in form.sidecars if base + sidecar.leaf in left]
        if not any(sidecar.is_required for sidecar in there):
            continue
        lacking = sum(sidecar.is_required and sidecar not in there for sidecar in form.sidecars)
        unfit = sum(judge_sidecar(sidecar, "", left[base + sidecar.leaf], logical) is not None for sidecar in there)
        misshaped = form.shape(logical) != stored.shape
        ranked.append((lacking + unfit + misshaped, order, form))
    return tuple(form for _, _, form in sorted(ranked, key=lambda entry: entry[:2]))


def judge_sidecar(sidecar: Sidecar, name: str, stored: Stored, logical: Shape) -> Wrong | None:
    """What is wrong with a sidecar of a weight of shape `logical`; None when nothing is."""
    if stored.dtype not in sidecar.dtypes:
        types = " or ".join(dtype.value for dtype in sidecar.dtypes)
        return Wrong(Code.DTYPE, name, stored.dtype.value, types)
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
