"""A group that is absent by the index and stored in a file the index does not name."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from modelbones.audit.audit import Audit
from modelbones.audit.words import one_finding
from modelbones.findings import Code, Finding
from modelbones.skeleton import Skeleton

LOADED_BY_NONE = "a loader that goes by the index never opens it, so the group stays at its random start or fails"


def stray_files(audit: Audit) -> tuple[str, ...]:
    """Files beside the index that it does not name, when some group is absent."""
    if not any(finding.code is Code.GROUP_ABSENT for finding in audit.findings):
        return ()
    return tuple(
        finding.name for finding in audit.findings if finding.code is Code.INDEX and finding.detail.get("stray")
    )


def with_strays(audit: Audit, skeleton: Skeleton, strays: Mapping[str, Container[str]]) -> Audit:
    """`audit` with each absent group's finding telling which stray file holds it."""
    return replace(audit, findings=tuple(_told(finding, skeleton, strays) for finding in audit.findings))


def _told(finding: Finding, skeleton: Skeleton, strays: Mapping[str, Container[str]]) -> Finding:
    if finding.code is not Code.GROUP_ABSENT:
        return finding
    names = [
        name
        for pattern in skeleton.patterns
        if pattern.group.value == finding.name and pattern.required
        for name in pattern.names()
    ]
    held = {file: sum(name in stored for name in names) for file, stored in strays.items()}
    file = max(held, key=lambda each: held[each], default=None)
    if file is None or not held[file]:
        return finding
    return one_finding(
        Code.GROUP_ABSENT,
        finding.name,
        found=f"none of its {len(names):,} tensors is in a file the index names; {file} holds {held[file]:,} of them",
        expected="the index to name that file",
        fix=f"add {file} and its tensors to the index",
        why=LOADED_BY_NONE,
        severity=finding.severity,
        detail={**finding.detail, "file": file, "tensors": held[file]},
    )
