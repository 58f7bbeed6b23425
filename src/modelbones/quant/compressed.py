"""What compressed-tensors' configs claim: groups of targets, each with a format.

Source: vllm-project/vllm vllm/model_executor/layers/quantization/compressed_tensors/
compressed_tensors.py; vllm-project/compressed-tensors src/compressed_tensors/config/format.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from modelbones.errors import UnknownSchemeError
from modelbones.quant import fp8, mx, nvfp4, packed_int
from modelbones.quant.claim import NOTHING, Claim, names_experts
from modelbones.quant.exclusions import listed, regex_or_name_match

_FORMATS: dict[str, frozenset[str]] = {
    "nvfp4-pack-quantized": frozenset({nvfp4.COMPRESSED_TENSORS}),
    "mxfp4-pack-quantized": frozenset({mx.MXFP4_PACKED}),
    "mxfp8-quantized": frozenset({mx.MXFP8}),
    "pack-quantized": frozenset({packed_int.INT4, packed_int.INT8}),
    "float-quantized": fp8.SCHEMES,
    "naive-quantized": fp8.SCHEMES,
    "dense": NOTHING,
}
_FP8_BY_STRATEGY = {"block": fp8.SCHEME, "channel": fp8.PER_CHANNEL, "tensor": fp8.PER_TENSOR}
_INT_BY_BITS = {4: packed_int.INT4, 8: packed_int.INT8}
_Rule = tuple[Callable[[str], bool], frozenset[str]]
"""Whether a module is one of a group's targets, and the schemes it is then stored in."""


def claims(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """The first group that targets a module says how it is stored; `ignore` wins."""
    listed_groups = groups(quantization.get("config_groups"))
    rules = [_rule(group, quantization.get("format"), place) for group in listed_groups]
    entries = listed(quantization.get("ignore"))
    is_ignored = regex_or_name_match(entries)

    def schemes_of(module: str) -> frozenset[str]:
        if is_ignored(module):
            return NOTHING
        return next((schemes for is_target, schemes in rules if is_target(module)), NOTHING)

    named = (*entries, *(target for group in listed_groups for target in listed(group.get("targets"))))
    return Claim(
        schemes=NOTHING.union(*(schemes for _, schemes in rules)),
        place=place,
        schemes_of=schemes_of,
        tells_experts_apart=names_experts(named),
    )


def groups(values: Any) -> list[Mapping[str, Any]]:
    """The groups of `config_groups`; anything else in it says nothing."""
    return [group for group in values.values() if isinstance(group, Mapping)] if isinstance(values, Mapping) else []


def _rule(group: Mapping[str, Any], overall: Any, place: str) -> _Rule:
    targets = listed(group.get("targets"))
    schemes = _schemes(group.get("format") or overall, group.get("weights"), place)
    return (lambda _: True) if "Linear" in targets else regex_or_name_match(targets), schemes


def _schemes(layout: Any, weights: Any, place: str) -> frozenset[str]:
    """The schemes of a format, as far as the group's other words narrow them."""
    schemes = _FORMATS.get(layout) if isinstance(layout, str) else None
    words = weights if isinstance(weights, Mapping) else {}
    bits, strategy = words.get("num_bits"), words.get("strategy")
    if layout == "pack-quantized" and bits is not None:
        found = _INT_BY_BITS.get(bits) if isinstance(bits, int) else None
        layout, schemes = f"{layout} of {bits} bits", None if found is None else frozenset({found})
    elif schemes == fp8.SCHEMES and words.get("type") == "int":
        layout, schemes = f"{layout} of integers", None
    elif schemes == fp8.SCHEMES and isinstance(strategy, str) and strategy in _FP8_BY_STRATEGY:
        schemes = frozenset({_FP8_BY_STRATEGY[strategy]})
    if schemes is None:
        known = tuple(f"compressed-tensors {name}" for name in _FORMATS)
        raise UnknownSchemeError(place=place, scheme=f"compressed-tensors {layout}", known=known)
    return schemes
