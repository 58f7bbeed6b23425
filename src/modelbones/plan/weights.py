"""Weight bytes on the widest rank, by role: each stored tensor through its pattern's split.

Sizes come from a checkpoint's headers, or from the contract and a quantisation recipe. A
sidecar is cut like its weight, as far as it has that dimension.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from modelbones.errors import SourceError
from modelbones.plan.fused import Parts
from modelbones.quant.form import base_of
from modelbones.ranks import Axis, Ranks
from modelbones.skeleton import Skeleton
from modelbones.synth.layout import stored_as
from modelbones.tensors import Group, TensorPattern
from modelbones.units import ceil_div, whole_bytes

if TYPE_CHECKING:
    from modelbones.checkpoint.stored import Stored
    from modelbones.quant.recipe import Recipe

Weights = Counter[str]
"""Role -> bytes on the widest rank."""


def from_recipe(skeleton: Skeleton, recipe: Recipe | None, ranks: Ranks, *, with_mtp: bool) -> Weights:
    """Weights of the contract, packed as `recipe` says; the MTP layer only when it is loaded."""
    weights: Weights = Counter()
    for pattern in _loaded(skeleton.patterns, with_mtp=with_mtp):
        if not pattern.required:
            continue
        each = sum(
            share(pattern, tensor.shape, tensor.dtype.bits, ranks)
            for tensor in stored_as("weight", pattern, skeleton.dtype, recipe)
        )
        weights[_part(pattern)] += each * _held(pattern, ranks)
    return weights


def from_census(
    skeleton: Skeleton, tensors: Mapping[str, Stored], ranks: Ranks, *, with_mtp: bool, place: str
) -> Weights:
    """Weights as the checkpoint at `place` stores them, whatever its names and schemes.

    Raises:
        SourceError: Weights that would be loaded are missing: their sum would be too small.
    """
    from modelbones.audit.pruned import kept_experts, with_kept
    from modelbones.dialects.recognise import recognise
    from modelbones.quant.registry import PACKED_LEAVES, SIDECAR_LEAVES

    leaves = (*PACKED_LEAVES, *SIDECAR_LEAVES)
    weights: Weights = Counter()
    missing: list[str] = []
    for spelling in recognise(skeleton, tensors):
        parts = Parts(skeleton, spelling.patterns, ranks)
        patterns = with_kept(spelling.patterns, kept_experts(spelling.patterns, tensors))
        for pattern in _loaded(patterns, with_mtp=with_mtp):
            stored: Counter[tuple[tuple[int, ...], int]] = Counter()
            for name in pattern.names():
                found = tuple(_found(name, tensors, leaves))
                stored.update((each.shape, each.dtype.bits) for each in found)
                if not found and pattern.required and pattern.group in (Group.TRUNK, Group.MTP):
                    missing.append(name)
            total = sum(share(pattern, shape, bits, ranks) * count for (shape, bits), count in stored.items())
            # Experts are alike: the widest rank holds its part of their sum.
            experts = max(1, pattern.num_experts)
            held, whole = parts.of(pattern)
            weights[_part(pattern)] += ceil_div(total * held, experts * whole) * _experts_held(pattern, ranks)
    if missing:
        raise SourceError(
            place=place,
            found=f"{len(missing)} tensors that would be loaded are missing, {missing[0]} among them",
            fix="their bytes cannot be counted; see `modelbones check`, or plan from its config.json",
        )
    return weights


def _loaded(patterns: tuple[TensorPattern, ...], *, with_mtp: bool) -> Iterator[TensorPattern]:
    return (pattern for pattern in patterns if with_mtp or pattern.group is not Group.MTP)


def _found(name: str, tensors: Mapping[str, Stored], leaves: tuple[str, ...]) -> Iterator[Stored]:
    """A weight and everything that stands beside it."""
    weight = tensors.get(name)
    if weight is not None:
        yield weight
        if weight.dtype.bits > 8 and weight.dtype.value.startswith(("F", "BF")):
            return
    base = base_of(name)
    for leaf in leaves:
        found = tensors.get(base + leaf)
        if found is not None:
            yield found


def share(pattern: TensorPattern, shape: tuple[int, ...], bits: int, ranks: Ranks) -> int:
    """Bytes of one stored tensor of `pattern` on the widest rank."""
    dims = list(shape)
    for cut in pattern.split:
        if cut.axis is Axis.EXPERTS and pattern.num_experts:
            continue
        size = pattern.shape[cut.dim]
        if cut.dim < len(dims) and len(dims) == len(pattern.shape):
            dims[cut.dim] = ceil_div(dims[cut.dim] * cut.widest(ranks), size)
    return whole_bytes(8 * ceil_div(prod(dims) * bits, 8))


def _experts_held(pattern: TensorPattern, ranks: Ranks) -> int:
    return ceil_div(max(1, pattern.num_experts), ranks.along(Axis.EXPERTS) if pattern.num_experts else 1)


def _held(pattern: TensorPattern, ranks: Ranks) -> int:
    return max(1, len(pattern.layers)) * _experts_held(pattern, ranks)


def _part(pattern: TensorPattern) -> str:
    group = "" if pattern.group is Group.TRUNK else f"{pattern.group.value}."
    role = pattern.role.value
    return f"weights.{group}{role}" if role != pattern.group.value else f"weights.{role}"
