"""Every scheme that can be judged: their forms by stored type, and who reads which claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from modelbones.dtypes import DType
from modelbones.errors import UnknownSchemeError
from modelbones.quant import fp8
from modelbones.quant.claim import Claim
from modelbones.quant.form import Form
from modelbones.quant.recipe import Recipe

FORMS: tuple[Form, ...] = (*fp8.FORMS,)

SIDECAR_LEAVES = frozenset(sidecar.leaf for form in FORMS for sidecar in form.sidecars)
PACKED_LEAVES = tuple(dict.fromkeys(form.leaf for form in FORMS if form.leaf != "weight"))

_CLAIMS: dict[str, Callable[..., Claim]] = {"fp8": fp8.claims}


def forms_stored_as(leaf: str, dtype: DType) -> tuple[Form, ...]:
    """The forms whose weight is called `leaf` and has this element type."""
    return tuple(form for form in FORMS if form.leaf == leaf and dtype in form.dtypes)


def read_claim(quantization: Mapping[str, Any] | None, *, place: str) -> Claim | None:
    """What a config claims; None when it claims nothing.

    Raises:
        UnknownSchemeError: It names a scheme that cannot be judged.
    """
    if quantization is None:
        return None
    method = quantization.get("quant_method")
    reader = _CLAIMS.get(method) if isinstance(method, str) else None
    if reader is None:
        raise UnknownSchemeError(place=place, scheme=str(method), known=tuple(sorted(_CLAIMS)))
    return reader(quantization, place=place)


RECIPES: dict[str, Recipe] = {recipe.scheme: recipe for recipe in (fp8.RECIPE,)}
"""Scheme -> how `synth` writes it."""
