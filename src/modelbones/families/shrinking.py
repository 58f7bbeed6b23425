"""Make a config small without changing its shape: fewer layers, smaller sizes, same keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modelbones.skeleton import Layer


def resized(values: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with each key that is there set to its small size; no key is added."""
    return {key: sizes.get(key, value) if value is not None else None for key, value in values.items()}


def first_layers(
    values: Mapping[str, Any],
    num_layers: int,
    *,
    per_layer: Iterable[str] = (),
    indices: Iterable[str] = (),
    first_index: int = 0,
) -> dict[str, Any]:
    """`values` for the first `num_layers` layers: lists cut, index lists filtered."""
    small = dict(values)
    if "num_hidden_layers" in small:
        small["num_hidden_layers"] = num_layers
    for key in per_layer:
        if isinstance(small.get(key), list | tuple | str):
            small[key] = small[key][:num_layers]
    for key in indices:
        if isinstance(small.get(key), list | tuple):
            small[key] = [index for index in small[key] if index - first_index < num_layers]
    return small


def shortest_stack(layers: Iterable[Layer]) -> int:
    """How many of the first layers hold every kind of layer there is."""
    seen: set[tuple[object, ...]] = set()
    needed = 0
    for position, layer in enumerate(layers, start=1):
        kind = (*(part.name for part in layer.parts), layer.indexer_from == layer.index)
        if kind not in seen:
            seen.add(kind)
            needed = position
    return needed
