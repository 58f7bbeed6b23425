"""What no pattern asked for: renamed tensors, scales without a weight, strangers."""

from __future__ import annotations

import re
from collections import defaultdict

from modelbones.audit.bound import Bound
from modelbones.audit.groups import group_of
from modelbones.audit.words import LOOK_ALIKE_LIMIT, MOST_NAMED, many, one_finding
from modelbones.checkpoint.stored import Stored
from modelbones.findings import Code, Finding, Severity
from modelbones.quant.registry import SIDECAR_LEAVES
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group

_DIGITS = re.compile(r"\d+")


def pair_renamed(bounds: list[Bound], left: dict[str, Stored]) -> list[tuple[Bound, str, str]]:
    """(pattern, wanted name, stored name) for each stranger that can only be one missing tensor.

    Two tensors pair when each is the only one that fits the other. The pair is taken out of
    what is left and of what is missing, so that one rename is one finding.
    """
    wants = [(bound, want) for bound in bounds for want in bound.wants]
    if not wants or not left or max(len(wants), len(left)) > LOOK_ALIKE_LIMIT:
        return []
    fitting = {name: [pair for pair in wants if pair[1].accepts(stored)] for name, stored in left.items()}
    suitors: dict[str, list[str]] = defaultdict(list)
    for name, pairs in fitting.items():
        for _, want in pairs:
            suitors[want.name].append(name)
    renamed = [
        (pairs[0][0], pairs[0][1].name, name)
        for name, pairs in fitting.items()
        if len(pairs) == 1 and len(suitors[pairs[0][1].name]) == 1
    ]
    for bound, wanted, name in renamed:
        del left[name]
        _no_longer_missing(bound, wanted)
    return renamed


def _no_longer_missing(bound: Bound, wanted: str) -> None:
    bound.missing = [name for name in bound.missing if name != wanted]
    bound.wrong = [wrong for wrong in bound.wrong if wrong.name != wanted or wrong.code is not Code.SCALE]
    bound.wants = [want for want in bound.wants if want.name != wanted]


def renamed_findings(renamed: list[tuple[Bound, str, str]]) -> list[Finding]:
    """One finding for each tensor that stands under another name."""
    return [
        one_finding(
            Code.RENAMED,
            wanted,
            found=f"not stored; {name} has its type and shape and belongs to nothing",
            expected="this name",
            fix=f"rename {name} to it, if it is this tensor",
            why="a loader that goes by names leaves this tensor at its random start or fails",
            detail={"stored_as": name},
        )
        for _, wanted, name in renamed
    ]


def stranger_findings(left: dict[str, Stored], skeleton: Skeleton) -> dict[Group, list[Finding]]:
    """Findings about everything that is left, by group; many of one kind are one finding."""
    kinds: dict[tuple[Group, Code, str], list[str]] = defaultdict(list)
    for name in left:
        leaf = name.rpartition(".")[2]
        code = Code.SCALE if leaf in SIDECAR_LEAVES else Code.UNEXPECTED
        kinds[group_of(name, skeleton), code, _DIGITS.sub("N", name)].append(name)
    found: dict[Group, list[Finding]] = defaultdict(list)
    for group, names in _undeclared(kinds, skeleton).items():
        found[group].append(_undeclared_finding(group, names, skeleton))
    for (group, code, kind), names in kinds.items():
        if group not in found or found[group][0].name != group.value:
            found[group].extend(_kind_findings(code, kind, names))
    return found


def _undeclared(kinds: dict[tuple[Group, Code, str], list[str]], skeleton: Skeleton) -> dict[Group, list[str]]:
    """Whole groups that are stored although the config declares none."""
    declared = {pattern.group for pattern in skeleton.patterns}
    names: dict[Group, list[str]] = defaultdict(list)
    for (group, _, _), some in kinds.items():
        if group not in declared:
            names[group].extend(some)
    return {group: listed for group, listed in names.items() if len(listed) > MOST_NAMED}


def _undeclared_finding(group: Group, names: list[str], skeleton: Skeleton) -> Finding:
    return one_finding(
        Code.UNEXPECTED,
        group.value,
        found=f"{len(names):,} tensors of a group the config does not declare, such as {min(names)}",
        expected=f"none: a {skeleton.model_type} config without this group",
        fix="declare the group in the config, or leave its tensors out",
        why="loaders skip them or refuse the checkpoint",
        severity=Severity.WARNING,
        detail={"count": len(names)},
    )


def _kind_findings(code: Code, kind: str, names: list[str]) -> list[Finding]:
    expected = "a quantised weight beside it" if code is Code.SCALE else "only tensors the config declares"
    fix = "store its weight quantised, or drop it" if code is Code.SCALE else "drop it, or correct the config"
    why = (
        "no decoder reads it, so its weight is taken as it stands"
        if code is Code.SCALE
        else "loaders drop it silently or refuse the checkpoint"
    )
    found = "a scale without a weight to scale" if code is Code.SCALE else "belongs to nothing the config declares"
    return many(code, kind, sorted(names), found=found, expected=expected, fix=fix, why=why)
