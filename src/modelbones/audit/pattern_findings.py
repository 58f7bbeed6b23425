"""Findings about the tensors of one pattern, and about a config's claim on all of them."""

from __future__ import annotations

from collections import Counter, defaultdict

from modelbones.audit.bound import Bound
from modelbones.audit.words import many, one_finding
from modelbones.findings import Code, Finding, Severity
from modelbones.quant.claim import Claim

_FIX = {
    Code.SHAPE: "write it again with the shape the config gives, or correct the config",
    Code.DTYPE: "convert it again from the original",
    Code.SCALE: "convert this module again from the original",
}
_WHY = {
    Code.SHAPE: "loading fails, or reads the numbers in another order",
    Code.DTYPE: "its bits are read as other numbers",
    Code.SCALE: "its numbers are off by the factor that is missing",
}


def pattern_findings(bound: Bound) -> list[Finding]:
    """What one pattern's tensors lack or have wrong."""
    pattern = bound.pattern
    findings = many(
        Code.MISSING,
        pattern.name,
        bound.missing,
        found="not stored",
        expected=f"a tensor of shape {list(pattern.shape)}",
        fix="fetch the file that should hold it, or convert again",
        why="engines stop here, or run on with random numbers in its place",
    )
    alike: dict[tuple[Code, str, str], list[str]] = defaultdict(list)
    for wrong in bound.wrong:
        found = "" if wrong.code is Code.SCALE else wrong.found
        alike[wrong.code, found, wrong.expected].append(wrong.name)
    first = {wrong.name: wrong.found for wrong in bound.wrong}
    for (code, _, expected), names in alike.items():
        found = first[names[0]]
        findings += many(code, pattern.name, names, found=found, expected=expected, fix=_FIX[code], why=_WHY[code])
    findings += many(
        Code.DTYPE,
        pattern.name,
        bound.risky,
        found="BF16",
        expected="F32",
        fix="keep this tensor in F32 when converting",
        why=pattern.permitted.risk,
        severity=Severity.WARNING,
    )
    return findings


def claim_findings(bounds: list[Bound], claim: Claim | None) -> list[Finding]:
    """Where the config's quantisation claim contradicts what is stored: one finding each way."""
    unpacked = [(bound, name) for bound in bounds for name in bound.unpacked]
    unclaimed = [(bound, name) for bound in bounds for name in bound.unclaimed]
    findings = []
    if claim is not None and unpacked:
        findings.append(
            _conflict(
                unpacked,
                found=f"stored unquantised, though {claim.place} claims {claim.scheme} for them",
                expected=f"{claim.scheme} on every module that is not excluded",
                fix="exclude these modules in the quantisation config",
                why="engines allocate packed weights for them and fail, or read them wrongly",
            )
        )
    if unclaimed:
        said = "the config claims nothing" if claim is None else f"{claim.place} excludes them from {claim.scheme}"
        findings.append(
            _conflict(
                unclaimed,
                found=f"stored quantised, though {said}",
                expected="what the quantisation config says",
                fix="claim these modules in the quantisation config",
                why="engines load the packed numbers as if they were plain weights",
            )
        )
    return findings


def _conflict(weights: list[tuple[Bound, str]], *, found: str, expected: str, fix: str, why: str) -> Finding:
    kinds = Counter(bound.pattern.role.value for bound, _ in weights)
    listed = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(kinds.items()))
    return one_finding(
        Code.QUANT_CONFLICT,
        weights[0][1],
        found=f"{len(weights):,} linear weights from here on ({listed}) {found}",
        expected=expected,
        fix=fix,
        why=why,
        detail={"count": len(weights), "kinds": dict(sorted(kinds.items()))},
    )
