"""What a built skeleton says, in the short forms the family tests compare."""

from __future__ import annotations

from typing import Any

from modelbones.families.registry import build, read_config
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group, TensorPattern


def skeleton(config: dict[str, Any] | str) -> Skeleton:
    """The skeleton of a raw config or of a preset."""
    return build(read_config(config))


def shapes(config: dict[str, Any] | str, stem: str, group: Group = Group.TRUNK) -> dict[str, tuple[int, ...]]:
    """The patterns of `group` under `stem`, which is left out of each name."""
    found = [p for p in skeleton(config).patterns if p.group is group and p.name.startswith(stem)]
    return {pattern.name.removeprefix(stem): pattern.shape for pattern in found}


def parameters(config: dict[str, Any] | str, group: Group = Group.TRUNK) -> int:
    """Elements of the required tensors of `group`."""
    return sum(p.numel * p.count for p in skeleton(config).patterns if p.group is group and p.required)


def names(config: dict[str, Any] | str, group: Group = Group.TRUNK) -> set[str]:
    """Names of the required tensors of `group`."""
    return {n for p in skeleton(config).patterns if p.group is group and p.required for n in p.names()}


def pattern(config: dict[str, Any] | str, leaf: str) -> TensorPattern:
    """The first pattern whose name ends so."""
    return next(p for p in skeleton(config).patterns if p.name.endswith(leaf))
