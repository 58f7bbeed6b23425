"""What part of a respelled tensor the widest rank holds: that of the contract's tensors it stands for.

A writer that joins, stacks or reshapes tensors leaves no dimension to cut; the tensors that went
into it still say how each is shared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

from modelbones.ranks import Axis, Ranks, widest_shape
from modelbones.skeleton import Skeleton
from modelbones.tensors import TensorPattern

_Key = tuple[str, tuple[int, ...]]
"""(name, layers): mixers of two kinds may call a tensor alike."""


class Parts:
    """(elements held, elements) of every stored pattern that has no cut of its own."""

    def __init__(self, skeleton: Skeleton, stored: Iterable[TensorPattern], ranks: Ranks) -> None:
        self._ranks = ranks
        self._contract: dict[_Key, TensorPattern] = {(p.name, p.layers): p for p in skeleton.patterns}
        self._claimed: Counter[_Key] = Counter()
        for pattern in stored:
            for key in _claims(pattern):
                self._claimed[key] += pattern.numel // pattern.logical_each

    def of(self, pattern: TensorPattern) -> tuple[int, int]:
        """The part of one stored tensor; beside its own cuts, and never by whole experts."""
        is_cut = any(cut.axis is not Axis.EXPERTS for cut in pattern.split)
        if pattern.stands_for is None or is_cut:
            return 1, 1
        meant = [self._contract[key] for key in _claims(pattern) if key in self._contract] or self._left_to(pattern)
        whole = sum(each.numel for each in meant)
        return (sum(self._held(each) for each in meant), whole) if whole else (1, 1)

    def _left_to(self, pattern: TensorPattern) -> list[TensorPattern]:
        """What a tensor that counts as none of the contract's must be of: those no other holds whole."""
        return [
            each
            for key, each in self._contract.items()
            if (each.group, each.role, each.layers) == (pattern.group, pattern.role, pattern.layers)
            and self._claimed[key] < each.numel
        ]

    def _held(self, pattern: TensorPattern) -> int:
        cuts = tuple(cut for cut in pattern.split if cut.axis is not Axis.EXPERTS)
        return prod(widest_shape(pattern.shape, cuts, self._ranks))


def _claims(pattern: TensorPattern) -> list[_Key]:
    names = (pattern.name,) if pattern.stands_for is None else pattern.stands_for
    return [(name, pattern.layers) for name in names]
