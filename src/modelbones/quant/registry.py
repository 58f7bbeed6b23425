"""Every scheme that can be judged: their forms by stored type, and who reads which claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from modelbones.dtypes import DType
from modelbones.errors import UnknownSchemeError
from modelbones.quant import compressed, fp8, mlx, mx, nvfp4, packed_int, producers
from modelbones.quant.claim import Claim, nothing_claimed
from modelbones.quant.form import Form
from modelbones.quant.recipe import Recipe

FORMS: tuple[Form, ...] = (*fp8.FORMS, *nvfp4.FORMS, *mx.FORMS, *packed_int.FORMS, *mlx.FORMS)

SIDECAR_LEAVES = frozenset(sidecar.leaf for form in FORMS for sidecar in form.sidecars)
PACKED_LEAVES = tuple(dict.fromkeys(form.leaf for form in FORMS if form.leaf != "weight"))

RECIPES: dict[str, Recipe] = {
    recipe.scheme: recipe for recipe in (fp8.RECIPE, *nvfp4.RECIPES, *mx.RECIPES, *packed_int.RECIPES, *mlx.RECIPES)
}
"""Scheme -> how `synth` writes it."""

FOREIGN_LEAVES = {
    "trellis": "exl3",
    "SCB": "bitsandbytes int8",
    "absmax": "bitsandbytes 4-bit",
    "codebooks": "aqlm",
    "Qidxs": "quip",
}
"""Leaves only a scheme that cannot be judged yet writes -> its name."""

_CLAIMS: dict[str, Callable[..., Claim | None]] = {
    "fp8": fp8.claims,
    "modelopt": producers.modelopt,
    "modelopt_fp4": producers.modelopt,
    "modelopt_mixed": producers.modelopt,
    "compressed-tensors": compressed.claims,
    "quark": producers.quark,
    "mxfp4": mx.claims,
    "awq": producers.awq,
    "gptq": producers.gptq,
}


@cache
def forms_stored_as(leaf: str, dtype: DType) -> tuple[Form, ...]:
    """The forms whose weight is called `leaf` and has this element type."""
    return tuple(form for form in FORMS if form.leaf == leaf and dtype in form.dtypes)


def read_claims(sources: Iterable[tuple[str, Mapping[str, Any] | None]], *, place: str) -> tuple[Claim, ...]:
    """The claims of a model's configs, given as (place, object); `place` is the model's.

    When no config says a word, that is a claim too: everything is stored plain. Empty when
    those that speak name no modules.
    """
    spoken = [(where, words) for where, words in sources if words is not None]
    if not spoken:
        return (nothing_claimed(place),)
    claims = (read_claim(words, place=where) for where, words in spoken)
    return tuple(claim for claim in claims if claim is not None)


def read_claim(quantization: Mapping[str, Any] | None, *, place: str) -> Claim | None:
    """What a config claims; None when it claims nothing, or names no modules.

    MLX writes no `quant_method`; `hf_quant_config.json` names its producer instead.

    Raises:
        UnknownSchemeError: It names a scheme that cannot be judged.
    """
    if quantization is None:
        return None
    method = quantization.get("quant_method")
    if method is None and isinstance(quantization.get("producer"), Mapping):
        method = quantization["producer"].get("name")
    if method is None and "bits" in quantization:
        return producers.mlx_quantization(quantization, place=place)
    reader = _CLAIMS.get(method) if isinstance(method, str) else None
    if reader is None:
        raise UnknownSchemeError(place=place, scheme=str(method), known=tuple(sorted(_CLAIMS)))
    return reader(quantization, place=place)
