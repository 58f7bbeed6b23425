"""What became of each group: sums over its patterns, and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from modelbones.audit.bound import Bound
from modelbones.audit.open_modules import OpenTensors
from modelbones.contract import NOTHING, Size
from modelbones.tensors import Group, Role


class Verdict(Enum):
    """What became of one group."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    DECLARED_ABSENT = "declared but absent"
    ABSENT = "absent"
    """Neither declared nor stored."""
    OPEN = "not judged"
    """Stored in a module that is counted and has no contract here."""


SETTLED = frozenset({Verdict.COMPLETE, Verdict.ABSENT, Verdict.OPEN})
"""Verdicts that leave nothing to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAudit:
    """One part of the release.

    Attributes:
        verdict: What became of it.
        bound: Required logical tensors that are there and right.
        required: Required logical tensors.
        tensors: Stored tensors it takes, sidecars included.
        parameters: Logical elements of what is bound.
        nbytes: Bytes of its stored tensors.
        schemes: Scheme -> logical tensors stored so.
    """

    verdict: Verdict
    bound: int
    required: int
    tensors: int
    parameters: int
    nbytes: int
    schemes: Mapping[str, int]


@dataclass(slots=True)
class _Sums:
    bound: int = 0
    required: int = 0
    lost: int = 0
    tensors: int = 0
    parameters: int = 0
    nbytes: int = 0
    wrong: int = 0
    missing: int = 0
    open_tensors: int = 0
    schemes: Counter[str] = field(default_factory=Counter)

    def add(self, bound: Bound) -> None:
        pattern = bound.pattern
        if pattern.required:
            self.bound += bound.bound * pattern.logical_each
            self.required += pattern.count * pattern.logical_each
            self.lost += bound.lost
        self.wrong += len(bound.wrong)
        self.missing += len(bound.absent)
        self.tensors += bound.tensors
        self.parameters += bound.bound * pattern.numel
        self.nbytes += bound.nbytes
        self.schemes += bound.schemes


def sizes_by_role(bounds: list[Bound]) -> dict[tuple[Role, Group], Size]:
    """What is stored and bound, by role and group, in contract order."""
    sizes: dict[tuple[Role, Group], Size] = {}
    for bound in bounds:
        key = bound.pattern.role, bound.pattern.group
        each = Size(tensors=bound.tensors, parameters=bound.bound * bound.pattern.numel, nbytes=bound.nbytes)
        sizes[key] = sizes.get(key, NOTHING) + each
    return {key: size for key, size in sizes.items() if size.tensors}


def group_audits(
    bounds: list[Bound], opened: tuple[OpenTensors, ...], *, renamed: set[Group], optional: frozenset[Group]
) -> dict[Group, GroupAudit]:
    """Every group's audit.

    `renamed` are groups some stranger belongs to after all; `optional` ones may be left out whole.
    """
    sums = {group: _Sums() for group in (Group.TRUNK, Group.MTP, Group.VISION)}
    for bound in bounds:
        sums.setdefault(bound.pattern.group, _Sums()).add(bound)
    for module in opened:
        held = sums.setdefault(module.group, _Sums())
        held.open_tensors += module.tensors
        held.nbytes += module.nbytes
    return {
        group: GroupAudit(
            verdict=_verdict(held, is_seen=group in renamed, is_optional=group in optional),
            bound=held.bound,
            required=held.required,
            tensors=held.tensors + held.open_tensors,
            parameters=held.parameters,
            nbytes=held.nbytes,
            schemes=dict(held.schemes),
        )
        for group, held in sums.items()
    }


def _verdict(held: _Sums, *, is_seen: bool, is_optional: bool) -> Verdict:
    if not held.required:
        return Verdict.OPEN if held.open_tensors else Verdict.ABSENT
    if held.bound == held.required and not held.missing and not held.wrong:
        return Verdict.COMPLETE
    if is_seen or held.tensors or held.lost:
        return Verdict.PARTIAL
    return Verdict.ABSENT if is_optional else Verdict.DECLARED_ABSENT
