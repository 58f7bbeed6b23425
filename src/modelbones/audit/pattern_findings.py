"""Findings about the tensors of one pattern, and about a config's claim on all of them."""

from __future__ import annotations

from collections import Counter, defaultdict

from modelbones.audit.bound import Bound, Clash
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


_CLASH = {
    Clash.UNPACKED: (
        "stored unquantised, though {place} claims {schemes} for them",
        "exclude these modules in the quantisation config: what is stored wins",
        "engines allocate packed weights for them and fail, or read them wrongly",
    ),
    Clash.UNCLAIMED: (
        "stored quantised, though {place} leaves them unquantised",
        "claim these modules in the quantisation config",
        "engines load the packed numbers as if they were plain weights",
    ),
    Clash.OTHER_SCHEME: (
        "stored in another scheme than {place} claims, {schemes}",
        "name the scheme that is stored in the quantisation config",
        "engines decode them by the wrong rule or fail",
    ),
}


def claim_findings(bounds: list[Bound], claims: tuple[Claim, ...]) -> list[Finding]:
    """Where a quantisation claim contradicts what is stored: one finding a kind of clash.

    Claims that are contradicted by the same weights share their finding.
    """
    findings = []
    for how in Clash:
        clashing: dict[tuple[str, ...], list[Claim]] = {}
        for number, claim in enumerate(claims):
            names = tuple(name for bound in bounds for name in bound.clashes.get((number, how), ()))
            if names:
                clashing.setdefault(names, []).append(claim)
        findings += [_conflict(how, same, bounds, claims) for same in clashing.values()]
    return findings


def _conflict(how: Clash, same: list[Claim], bounds: list[Bound], claims: tuple[Claim, ...]) -> Finding:
    number = claims.index(same[0])
    weights = [(bound, name) for bound in bounds for name in bound.clashes.get((number, how), ())]
    kinds = Counter(bound.pattern.role.value for bound, _ in weights)
    listed = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(kinds.items()))
    place = " and ".join(claim.place for claim in same)
    found, fix, why = _CLASH[how]
    words = found.format(place=place, schemes=same[0].scheme)
    noun = "linear weight is" if len(weights) == 1 else "linear weights are"
    return one_finding(
        Code.QUANT_CONFLICT,
        weights[0][1],
        found=f"{len(weights):,} {noun} ({listed}; this is the first) {words}",
        expected="a config that says what is stored",
        fix=fix,
        why=why,
        detail={"count": len(weights), "kinds": dict(sorted(kinds.items())), "clash": how.value},
    )
