"""What each producer's config claims, by its own rules for naming modules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from modelbones.errors import UnknownSchemeError
from modelbones.quant import fp8, mlx, mx, nvfp4, packed_int
from modelbones.quant.claim import NOTHING, Claim, everything_but
from modelbones.quant.exclusions import (
    listed,
    regex_or_name_match,
    substring_match,
    wildcard_match,
)

_MODELOPT_ALGORITHMS = {
    "NVFP4": frozenset({nvfp4.MODELOPT}),
    "MXFP8": frozenset({mx.MXFP8}),
    "FP8": frozenset({fp8.PER_TENSOR, fp8.PER_CHANNEL}),
    "FP8_PB_WO": frozenset({fp8.SCHEME}),
    "MIXED_PRECISION": frozenset({nvfp4.MODELOPT, mx.MXFP8, *fp8.SCHEMES}),
}
_FORMATS = {
    "nvfp4-pack-quantized": frozenset({nvfp4.COMPRESSED_TENSORS}),
    "mxfp4-pack-quantized": frozenset({mx.MXFP4_PACKED}),
    "pack-quantized": frozenset({packed_int.INT4, packed_int.INT8}),
    "float-quantized": fp8.SCHEMES,
    "naive-quantized": fp8.SCHEMES,
}


def modelopt(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """modelopt: one algorithm for every linear module that no `ignore` pattern names.

    Also `hf_quant_config.json`, whose `quantization` says `exclude_modules`, and may list
    the quantised modules one by one.
    """
    inner = quantization.get("quantization")
    words = inner if isinstance(inner, Mapping) else quantization
    algorithm = words.get("quant_algo")
    schemes = _MODELOPT_ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
    if schemes is None:
        known = tuple(f"modelopt {name}" for name in _MODELOPT_ALGORITHMS)
        raise UnknownSchemeError(place=place, scheme=f"modelopt {algorithm}", known=known)
    entries = (*listed(words.get("ignore")), *listed(words.get("exclude_modules")))
    layers = words.get("quantized_layers")
    if isinstance(layers, Mapping) and layers:
        return _by_name(layers, schemes, place)
    return everything_but(wildcard_match(entries), schemes=schemes, place=place, entries=entries)


def _by_name(layers: Mapping[str, Any], schemes: frozenset[str], place: str) -> Claim:
    def schemes_of(module: str) -> frozenset[str]:
        entry = layers.get(module)
        algorithm = entry.get("quant_algo") if isinstance(entry, Mapping) else None
        return _MODELOPT_ALGORITHMS.get(algorithm, schemes) if isinstance(algorithm, str) else NOTHING

    return Claim(schemes=schemes, place=place, schemes_of=schemes_of, tells_experts_apart=True)


def compressed_tensors(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """compressed-tensors: groups of targets, each with a format; `ignore` wins.

    Source: vllm-project/vllm .../compressed_tensors/compressed_tensors.py.
    """
    groups = quantization.get("config_groups")
    rules = [_group(group, quantization, place) for group in groups.values()] if isinstance(groups, Mapping) else []
    entries = listed(quantization.get("ignore"))
    is_ignored = regex_or_name_match(entries)

    def schemes_of(module: str) -> frozenset[str]:
        if is_ignored(module):
            return NOTHING
        return next((schemes for is_target, schemes in rules if is_target(module)), NOTHING)

    named = (*entries, *(target for group in _groups(groups) for target in listed(group.get("targets"))))
    return Claim(
        schemes=frozenset().union(*(schemes for _, schemes in rules)),
        place=place,
        schemes_of=schemes_of,
        tells_experts_apart=any(re.search(r"experts\.\d", name) for name in named),
    )


def _groups(groups: Any) -> list[Mapping[str, Any]]:
    return [group for group in groups.values() if isinstance(group, Mapping)] if isinstance(groups, Mapping) else []


def _group(group: Any, quantization: Mapping[str, Any], place: str) -> tuple[Any, frozenset[str]]:
    words = group if isinstance(group, Mapping) else {}
    layout = words.get("format") or quantization.get("format")
    schemes = _FORMATS.get(layout) if isinstance(layout, str) else None
    if schemes is None:
        known = tuple(f"compressed-tensors {name}" for name in _FORMATS)
        raise UnknownSchemeError(place=place, scheme=f"compressed-tensors {layout}", known=known)
    targets = listed(words.get("targets"))
    if "Linear" in targets:
        return (lambda _: True), schemes
    return regex_or_name_match(targets), schemes


def quark(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """Quark: one global layout, others for layers by pattern, `exclude` by pattern."""
    overall = _quark_schemes(quantization.get("global_quant_config"), place)
    by_layer = quantization.get("layer_quant_config")
    layers = by_layer.items() if isinstance(by_layer, Mapping) else ()
    special = [(wildcard_match([pattern]), _quark_schemes(words, place)) for pattern, words in layers]
    entries = listed(quantization.get("exclude"))
    is_excluded, by_regex = wildcard_match(entries), regex_or_name_match(entries)

    def schemes_of(module: str) -> frozenset[str]:
        if is_excluded(module) or by_regex(module):
            return NOTHING
        return next((schemes for matches, schemes in special if matches(module)), overall)

    schemes = overall.union(*(schemes for _, schemes in special))
    return Claim(schemes=schemes, place=place, schemes_of=schemes_of, tells_experts_apart=True)


def _quark_schemes(words: Any, place: str) -> frozenset[str]:
    weight = words.get("weight") if isinstance(words, Mapping) else None
    layout = weight[0] if isinstance(weight, list) and weight else weight
    dtype = layout.get("dtype") if isinstance(layout, Mapping) else None
    known = {"fp4": frozenset({mx.MXFP4}), "fp8_e4m3": fp8.SCHEMES}
    if dtype not in known:
        raise UnknownSchemeError(place=place, scheme=f"quark {dtype}", known=tuple(f"quark {name}" for name in known))
    return known[dtype]


def awq(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """AutoAWQ: every linear module but those whose name holds an entry; the head never."""
    entries = (*listed(quantization.get("modules_to_not_convert")), "lm_head")
    schemes = frozenset({packed_int.AWQ})
    return everything_but(substring_match(entries), schemes=schemes, place=place, entries=entries)


def names_none(quantization: Mapping[str, Any], *, place: str) -> None:
    """GPTQ names no modules: what is stored says what is quantised, and nothing can conflict."""
    if quantization.get("bits") not in (4, 8):
        scheme = f"gptq of {quantization.get('bits')} bits"
        raise UnknownSchemeError(place=place, scheme=scheme, known=("gptq of 4 bits", "gptq of 8 bits"))


def mlx_quantization(quantization: Mapping[str, Any], *, place: str) -> None:
    """MLX quantises the modules that have `scales` beside them; the config gives defaults only."""
    if not isinstance(quantization.get("bits"), int):
        raise UnknownSchemeError(place=place, scheme="mlx without bits", known=(mlx.AFFINE, mlx.MX))
