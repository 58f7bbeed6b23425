"""Findings in words: one a tensor while they are few, one a kind when they are many."""

from __future__ import annotations

from collections.abc import Mapping

from modelbones.findings import Code, Finding, Severity

MOST_NAMED = 8
"""Tensors of one kind that get a finding each; more of them share one."""
LOOK_ALIKE_LIMIT = 512
"""Strangers and missing tensors up to which renamed pairs are looked for."""
_MOST_IN_DETAIL = 1000


def one_finding(
    code: Code,
    name: str,
    *,
    found: str,
    expected: str,
    fix: str,
    why: str,
    severity: Severity = Severity.ERROR,
    detail: Mapping[str, object] | None = None,
) -> Finding:
    """A finding whose message is `name: found; expected; what to do`."""
    return Finding(
        code=code,
        severity=severity,
        name=name,
        message=f"{name}: {found}; expected {expected}; {fix}",
        why=why,
        fix=fix,
        detail=detail or {},
    )


def many(
    code: Code,
    kind: str,
    names: list[str],
    *,
    found: str,
    expected: str,
    fix: str,
    why: str,
    severity: Severity = Severity.ERROR,
) -> list[Finding]:
    """A finding for each of a few names, or one for a whole kind of many."""
    if len(names) <= MOST_NAMED:
        return [
            one_finding(code, name, found=found, expected=expected, fix=fix, why=why, severity=severity)
            for name in names
        ]
    listed = f"{len(names):,} tensors, such as {names[0]}: {found}"
    return [
        one_finding(
            code,
            kind,
            found=listed,
            expected=expected,
            fix=fix,
            why=why,
            severity=severity,
            detail={"count": len(names), "names": names[:_MOST_IN_DETAIL]},
        )
    ]
