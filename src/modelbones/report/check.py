"""The `check` report: is this checkpoint that model?"""

from __future__ import annotations

from collections import Counter
from typing import Any

from modelbones.audit import Audit, GroupAudit
from modelbones.checkpoint.quote import counted
from modelbones.contract import StructuralAccounting
from modelbones.dialects.known import PUBLISHED
from modelbones.findings import Finding, Severity
from modelbones.report.blocks import Block, Facts, Lines, Table, visible
from modelbones.report.words import resolved
from modelbones.tensors import Group
from modelbones.units import format_exact


def check_json(model: str, model_type: str, audit: Audit, *, revision: str | None = None) -> dict[str, Any]:
    """The whole audit as JSON."""
    return {
        "schema": "modelbones/check/1",
        "model": model,
        "revision": revision,
        "model_type": model_type,
        "place": audit.place,
        "verdict": verdict(audit),
        "tensors": audit.tensors,
        "bytes": audit.nbytes,
        "files": audit.files,
        "parameters": audit.parameters,
        "scheme": audit.scheme,
        "schemes": {scheme: nbytes for scheme, nbytes in sorted(audit.schemes.items()) if nbytes},
        "structural": _structural_json(audit.structural),
        "structural_raw": _structural_json(audit.structural_raw),
        "groups": {
            group.value: {**_group_json(judged), "dialect": dialect(audit, group)}
            for group, judged in audit.groups.items()
        },
        "roles": [
            {
                "role": role.value,
                "group": group.value,
                "tensors": size.tensors,
                "parameters": size.parameters,
                "bytes": size.nbytes,
            }
            for (role, group), size in audit.roles.items()
        ],
        "findings": [finding_json(finding) for finding in audit.findings],
    }


def dialect(audit: Audit, group: Group) -> str:
    """Whose names a group is stored under."""
    spelling = audit.spellings.get(group)
    return "+".join(spelling.writers) if spelling is not None and spelling.writers else PUBLISHED


def verdict(audit: Audit) -> str:
    """The verdict's word."""
    return "complete" if audit.is_complete else "incomplete"


def _structural_json(accounting: StructuralAccounting) -> dict[str, Any]:
    return {
        "required": accounting.required,
        "bound": accounting.bound,
        "missing": list(accounting.missing),
        "unexpected": list(accounting.unexpected),
        "deferred": accounting.deferred,
        "is_complete": accounting.is_complete(),
    }


def _group_json(judged: GroupAudit) -> dict[str, Any]:
    return {
        "verdict": judged.verdict.value,
        "bound": judged.bound,
        "required": judged.required,
        "tensors": judged.tensors,
        "parameters": judged.parameters,
        "bytes": judged.nbytes,
        "schemes": {scheme: count for scheme, count in sorted(judged.schemes.items()) if count},
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as JSON."""
    return {
        "code": finding.code.value,
        "severity": finding.severity.value,
        "name": finding.name,
        "message": finding.message,
        "why": finding.why,
        "fix": finding.fix,
        "detail": dict(finding.detail),
    }


def check_blocks(model: str, model_type: str, audit: Audit, *, revision: str | None = None) -> tuple[Block, ...]:
    """The audit for people."""
    counts = Counter(finding.severity for finding in audit.findings)
    summary = ", ".join(counted(counts[severity], severity.value) for severity in Severity if counts[severity])
    facts = Facts(
        rows=(
            ("model", f"{model} ({model_type})"),
            *resolved(revision),
            ("checkpoint", audit.place),
            ("stored", f"{audit.tensors:,} tensors in {counted(audit.files, 'file')}, {format_exact(audit.nbytes)}"),
            ("scheme", audit.scheme),
            ("parameters", f"{audit.parameters:,}"),
            ("verdict", f"{verdict(audit)}" + (f"; {summary}" if summary else "; nothing found")),
        )
    )
    groups = Table(
        columns=("group", "verdict", ">bound", ">of", ">tensors", ">bytes", "names"),
        rows=tuple(
            (
                group.value,
                judged.verdict.value,
                f"{judged.bound:,}",
                f"{judged.required:,}",
                f"{judged.tensors:,}",
                f"{judged.nbytes:,}",
                dialect(audit, group),
            )
            for group, judged in audit.groups.items()
        ),
    )
    return (facts, groups, *(_finding_block(finding) for finding in audit.findings))


def _finding_block(finding: Finding) -> Block:
    lines = [finding.message]
    if finding.why:
        lines.append(f"Why it matters: {finding.why}.")
    return Lines(title=f"{finding.severity.value}: {finding.code.value}", lines=tuple(lines))


def github_annotations(audit: Audit) -> str:
    """The findings as GitHub workflow commands, one a line."""
    levels = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
    return "".join(
        f"::{levels[finding.severity]} title={_escaped(finding.code.value, is_property=True)}"
        f"::{_escaped(visible(finding.message))}\n"
        for finding in audit.findings
    )


def _escaped(text: str, *, is_property: bool = False) -> str:
    """Source: actions/toolkit packages/core/src/command.ts escapes these characters."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    for plain, escape in pairs + ([(":", "%3A"), (",", "%2C")] if is_property else []):
        text = text.replace(plain, escape)
    return text
