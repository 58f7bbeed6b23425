"""Fewer experts than the config says, layer by layer: pruned builds, judged by their router.

A layer counts as pruned when its router has fewer rows and its experts agree: the last one
the rows allow is stored and the next is not. Any other router is a router of a wrong shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modelbones.audit.words import one_finding
from modelbones.checkpoint.stored import Stored
from modelbones.dialects.algebra import Patterns
from modelbones.dialects.recognise import is_stored
from modelbones.findings import Code, Finding, Severity
from modelbones.tensors import EXPERT, LAYER, Role, TensorPattern

Kept = dict[int, int]
"""Layer -> experts it keeps."""


def kept_experts(patterns: Patterns, tensors: Mapping[str, Stored]) -> Kept:
    """The layers of one group that keep fewer experts than declared."""
    kept: Kept = {}
    routed = [pattern for pattern in patterns if pattern.role is Role.EXPERTS]
    for router in patterns:
        if router.role is not Role.ROUTER or len(router.shape) != 2:
            continue
        for layer in router.layers:
            stored = tensors.get(router.names_in(layer)[0])
            if stored is None or len(stored.shape) != 2 or stored.shape[1] != router.shape[1]:
                continue
            rows = stored.shape[0]
            mine = [pattern for pattern in routed if layer in pattern.layers]
            if rows < router.shape[0] and mine and all(_agrees(p, layer, rows, tensors) for p in mine):
                kept[layer] = rows
    return kept


def _agrees(pattern: TensorPattern, layer: int, rows: int, tensors: Mapping[str, Stored]) -> bool:
    name = pattern.name.replace(LAYER, str(layer))
    if pattern.num_experts:
        last, following = (name.replace(EXPERT, str(expert)) for expert in (rows - 1, rows))
        return is_stored(last, tensors) and not is_stored(following, tensors)
    stored = tensors.get(name)
    return stored is not None and stored.shape[:1] == (rows,)


def with_kept(patterns: Patterns, kept: Kept) -> Patterns:
    """`patterns` with each pruned layer asked for the experts it keeps."""
    if not kept:
        return patterns
    result: list[TensorPattern] = []
    for pattern in patterns:
        if pattern.role not in (Role.ROUTER, Role.EXPERTS) or not pattern.layers:
            result.append(pattern)
            continue
        by_count: dict[int | None, list[int]] = {}
        for layer in pattern.layers:
            by_count.setdefault(kept.get(layer), []).append(layer)
        result += [_resized(pattern, count, tuple(layers)) for count, layers in by_count.items()]
    return tuple(result)


def _resized(pattern: TensorPattern, count: int | None, layers: tuple[int, ...]) -> TensorPattern:
    if count is None:
        return replace(pattern, layers=layers)
    if pattern.num_experts:
        return replace(pattern, layers=layers, num_experts=count)
    # A router's rows, its bias and a stack of experts all have the experts in front.
    shape = (count, *pattern.shape[1:])
    cuts = tuple(replace(cut, blocks=((count, count),)) if cut.dim == 0 else cut for cut in pattern.split)
    return replace(pattern, layers=layers, shape=shape, stacked=count if pattern.stacked else 0, split=cuts)


def pruned_finding(kept: Kept, declared: int) -> Finding:
    """One finding about all pruned layers."""
    counts = sorted(set(kept.values()))
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    noun = "layer keeps" if len(kept) == 1 else "layers keep"
    return one_finding(
        Code.SHAPE,
        "experts",
        found=f"{len(kept)} {noun} {span} routed experts, and their routers agree",
        expected=f"{declared}, as the config says",
        fix="state the count in the config, or use a loader that reads it layer by layer",
        why="an engine allocates the config's count and fails on the router, or routes to experts that are not there",
        severity=Severity.WARNING,
        detail={"layers": {str(layer): count for layer, count in sorted(kept.items())}, "declared": declared},
    )
