"""What each producer's config claims, by its own rules for naming modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.errors import UnknownSchemeError
from modelbones.quant import fp8, mlx, mx, nvfp4, packed_int
from modelbones.quant.claim import NOTHING, Claim, everything_but, names_experts, nothing_claimed, what_is_stored
from modelbones.quant.compressed import groups as _groups
from modelbones.quant.exclusions import (
    listed,
    modules_above,
    regex_or_name_match,
    substring_match,
    wildcard_match,
)

_MODELOPT_ALGORITHMS = {
    "NVFP4": frozenset({nvfp4.MODELOPT}),
    "W4A16_NVFP4": frozenset({nvfp4.MODELOPT}),
    "MXFP8": frozenset({mx.MXFP8}),
    "FP8": frozenset({fp8.PER_TENSOR, fp8.PER_CHANNEL}),
    "FP8_PER_CHANNEL_PER_TOKEN": frozenset({fp8.PER_CHANNEL}),
    "FP8_PB_WO": frozenset({fp8.SCHEME}),
    "MIXED_PRECISION": frozenset({nvfp4.MODELOPT, mx.MXFP8, *fp8.SCHEMES}),
}
_UNQUANTISED = (None, "UNQUANTIZED")
"""What a module's own entry says when it is left alone."""


def modelopt(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """modelopt: one algorithm for every linear module that no `ignore` pattern names.

    Also `hf_quant_config.json`, whose `quantization` says `exclude_modules`. Mixed precision
    names the quantised modules, or one above them, in `quantized_layers` or as targets.
    """
    inner = quantization.get("quantization")
    words = inner if isinstance(inner, Mapping) else quantization
    if words.get("quant_algo") is None and (words.get("kv_cache_quant_algo") or words.get("kv_cache_scheme")):
        # Only the KV cache is quantised.
        return nothing_claimed(place)
    schemes = _algorithm(words.get("quant_algo"), place)
    entries = (*listed(words.get("ignore")), *listed(words.get("exclude_modules")))
    layers = words.get("quantized_layers")
    named = _layers(layers, place) if isinstance(layers, Mapping) else _targets(words.get("config_groups"), schemes)
    if not named:
        return everything_but(wildcard_match(entries), schemes=schemes, place=place, entries=entries)
    is_excluded = wildcard_match(entries)
    return Claim(
        schemes=NOTHING.union(*named.values()),
        place=place,
        schemes_of=lambda module: NOTHING if is_excluded(module) else _named(module, named),
        tells_experts_apart=names_experts((*entries, *named)),
    )


def _algorithm(algorithm: Any, place: str) -> frozenset[str]:
    schemes = _MODELOPT_ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
    if schemes is None:
        known = tuple(f"modelopt {name}" for name in _MODELOPT_ALGORITHMS)
        raise UnknownSchemeError(place=place, scheme=f"modelopt {algorithm}", known=known)
    return schemes


def _layers(layers: Mapping[str, Any], place: str) -> dict[str, frozenset[str]]:
    """`quantized_layers`: module -> its schemes."""
    algorithms = {
        module: entry.get("quant_algo") if isinstance(entry, Mapping) else None for module, entry in layers.items()
    }
    return {
        module: NOTHING if algorithm in _UNQUANTISED else _algorithm(algorithm, place)
        for module, algorithm in algorithms.items()
    }


def _targets(groups: Any, schemes: frozenset[str]) -> dict[str, frozenset[str]]:
    """The modules that `config_groups` name; none when they target the whole class."""
    targets = [target for group in _groups(groups) for target in listed(group.get("targets"))]
    return {} if "Linear" in targets else dict.fromkeys(targets, schemes)


def _named(module: str, named: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What is said of a module, or of the closest one above it, with or without "language_model."."""
    for above in modules_above(module):
        for spelled in (
            above,
            above.replace(".language_model.", ".", 1),
            above.replace("model.", "model.language_model.", 1),
        ):
            if spelled in named:
                return named[spelled]
    return NOTHING


def quark(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """Quark: one global layout, others for layers by pattern, `exclude` by pattern."""
    overall = _quark_schemes(quantization.get("global_quant_config"), place)
    by_layer = quantization.get("layer_quant_config")
    layers = tuple(by_layer.items()) if isinstance(by_layer, Mapping) else ()
    special = [(wildcard_match([pattern]), _quark_schemes(words, place)) for pattern, words in layers]
    entries = listed(quantization.get("exclude"))
    is_excluded, by_regex = wildcard_match(entries), regex_or_name_match(entries)

    def schemes_of(module: str) -> frozenset[str]:
        if is_excluded(module) or by_regex(module):
            return NOTHING
        return next((schemes for matches, schemes in special if matches(module)), overall)

    schemes = overall.union(*(schemes for _, schemes in special))
    named = (*entries, *(pattern for pattern, _ in layers))
    return Claim(schemes=schemes, place=place, schemes_of=schemes_of, tells_experts_apart=names_experts(named))


def _quark_schemes(words: Any, place: str) -> frozenset[str]:
    weight = words.get("weight") if isinstance(words, Mapping) else None
    layout = weight[0] if isinstance(weight, list) and weight else weight
    dtype = layout.get("dtype") if isinstance(layout, Mapping) else None
    known = {"fp4": frozenset({mx.MXFP4}), "fp8_e4m3": fp8.SCHEMES}
    if not isinstance(dtype, str) or dtype not in known:
        raise UnknownSchemeError(place=place, scheme=f"quark {dtype}", known=tuple(f"quark {name}" for name in known))
    return known[dtype]


def awq(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """AutoAWQ: every linear module but those whose name holds an entry; the head never."""
    bits, version = quantization.get("bits", 4), quantization.get("version", "gemm")
    if bits != 4 or (isinstance(version, str) and version.lower().startswith("gemv")):
        raise UnknownSchemeError(place=place, scheme=f"awq {version} of {bits} bits", known=("awq gemm of 4 bits",))
    entries = (*listed(quantization.get("modules_to_not_convert")), "lm_head")
    schemes = frozenset({packed_int.AWQ})
    return everything_but(substring_match(entries), schemes=schemes, place=place, entries=entries)


def gptq(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """GPTQ names no modules: what is packed is stored so, and in no other scheme."""
    if quantization.get("bits") not in (4, 8):
        scheme = f"gptq of {quantization.get('bits')} bits"
        raise UnknownSchemeError(place=place, scheme=scheme, known=("gptq of 4 bits", "gptq of 8 bits"))
    return what_is_stored(frozenset({packed_int.GPTQ4, packed_int.GPTQ8}), place=place)


def mlx_quantization(quantization: Mapping[str, Any], *, place: str) -> Claim | None:
    """MLX quantises the modules that have `scales` beside them; single modules may be said to be, or not.

    Source: ml-explore/mlx-lm mlx_lm/utils.py::load_model, class_predicate.
    """
    if type(quantization.get("bits")) is not int:
        raise UnknownSchemeError(place=place, scheme="mlx without bits", known=(mlx.AFFINE, mlx.MX))
    either = frozenset({mlx.AFFINE, mlx.MX})
    named = {
        module: NOTHING if entry is False else either
        for module, entry in quantization.items()
        if isinstance(entry, bool | Mapping)
    }
    return what_is_stored(either, place=place, named=named) if named else None
