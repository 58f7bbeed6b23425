"""`audit`: a contract against a census, to verdicts by group and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from modelbones.audit.binding import Binder
from modelbones.audit.group_findings import group_findings
from modelbones.audit.leftovers import pair_renamed, renamed_findings, stranger_findings
from modelbones.audit.open_modules import take_open
from modelbones.audit.options import Options
from modelbones.audit.pattern_findings import claim_findings
from modelbones.audit.pruned import Kept, kept_experts, pruned_finding, with_kept
from modelbones.audit.spelling import spelling_finding
from modelbones.audit.structure import logical_accounting
from modelbones.audit.verdicts import SETTLED, GroupAudit, Verdict, group_audits, sizes_by_role
from modelbones.checkpoint.census import Census
from modelbones.checkpoint.stored import Stored
from modelbones.contract import Size, StructuralAccounting, account
from modelbones.dialects.recognise import Spelling, recognise
from modelbones.errors import UnknownSchemeError
from modelbones.findings import Code, Finding, Severity
from modelbones.quant.claim import PLAIN, Claim
from modelbones.quant.registry import FOREIGN_LEAVES, RECIPES
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Everything an audit says.

    Attributes:
        place: The checkpoint, as it was named.
        is_complete: Whether every judged group that must be there is, and right; quantisation
            claims have no say in it.
        groups: Every group that is declared or stored.
        findings: Errors first, then warnings, then notes; in reading order within each.
        tensors: Stored tensors.
        nbytes: Their bytes.
        files: Files that were read.
        parameters: Logical elements of all that is bound.
        spellings: How each declared group is spelled.
        schemes: Scheme -> bytes stored so, sidecars included.
        roles: (role, group) -> what is stored for it: tensors with sidecars, logical parameters, bytes.
        structural: The seed's accounting on logical names.
        structural_raw: The same on the names as they are stored.
    """

    place: str
    is_complete: bool
    groups: Mapping[Group, GroupAudit]
    findings: tuple[Finding, ...]
    tensors: int
    nbytes: int
    files: int
    parameters: int
    spellings: Mapping[Group, Spelling]
    schemes: Mapping[str, int]
    roles: Mapping[tuple[Role, Group], Size]
    structural: StructuralAccounting
    structural_raw: StructuralAccounting

    @property
    def scheme(self) -> str:
        """The quantisation schemes found, joined by "+"; "none" when nothing is quantised."""
        quantised = [scheme for scheme, nbytes in self.schemes.items() if nbytes and scheme != PLAIN]
        return "+".join(sorted(quantised)) or PLAIN

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)


_SERIOUSNESS = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def audit(skeleton: Skeleton, census: Census, claims: tuple[Claim, ...], options: Options | None = None) -> Audit:
    """Hold `skeleton`'s contract and `claims` against what `census` found."""
    options = options or Options()
    spellings = recognise(skeleton, census.tensors, census.unread)
    binder = Binder(census, _lost(census), claims)
    kept = {spelling.group: kept_experts(spelling.patterns, census.tensors) for spelling in spellings}
    bounds = [
        binder.bind(pattern) for spelling in spellings for pattern in with_kept(spelling.patterns, kept[spelling.group])
    ]
    _ensure_known(binder.left, census.place)
    opened = take_open(binder.left, skeleton.open_prefixes)
    logical = logical_accounting(bounds, binder.left)
    explained = {*binder.left, *(want.name for bound in bounds for want in bound.wants)}
    renamed = pair_renamed(bounds, binder.left)
    strangers = stranger_findings(binder.left, skeleton)
    groups = group_audits(
        bounds, opened, renamed={bound.pattern.group for bound, _, _ in renamed}, optional=skeleton.optional_groups
    )
    findings = _unexplained(census.findings, explained)
    for group, judged in groups.items():
        if options.judges(group):
            findings += [spelling_finding(each) for each in spellings if each.group is group and each.writers]
            findings += _pruned(group, kept, skeleton)
            findings += group_findings(group, judged, bounds, options)
            findings += renamed_findings([entry for entry in renamed if entry[0].pattern.group is group])
            findings += strangers.get(group, [])
    findings += claim_findings([bound for bound in bounds if options.judges(bound.pattern.group)], claims)
    return Audit(
        place=census.place,
        is_complete=all(_is_settled(group, judged, options) for group, judged in groups.items()),
        groups=groups,
        findings=tuple(sorted(findings, key=lambda finding: _SERIOUSNESS[finding.severity])),
        tensors=len(census.tensors),
        nbytes=census.payload_bytes,
        files=len(census.files),
        parameters=sum(judged.parameters for judged in groups.values()),
        spellings={spelling.group: spelling for spelling in spellings},
        schemes=sum((bound.scheme_bytes for bound in bounds), Counter()),
        roles=sizes_by_role(bounds),
        structural=logical,
        structural_raw=account(skeleton.structural_tensor_set(), census.tensors.keys()),
    )


def _ensure_known(left: Mapping[str, Stored], place: str) -> None:
    """Refuse a checkpoint whose weights are in a scheme no one here can judge."""
    for name in left:
        scheme = FOREIGN_LEAVES.get(name.rpartition(".")[2])
        if scheme is not None:
            raise UnknownSchemeError(place=place, scheme=scheme, known=tuple(RECIPES))


def _unexplained(findings: tuple[Finding, ...], explained: set[str]) -> list[Finding]:
    """The files' findings, without those that only repeat what is missing or left over.

    A tensor that is gone from its file is gone from the index's point of view too: one
    fault, one finding.
    """
    return [finding for finding in findings if not _is_explained(finding, explained)]


def _is_explained(finding: Finding, explained: set[str]) -> bool:
    names = finding.detail.get("tensors")
    if finding.code is not Code.INDEX or not isinstance(names, list) or not names:
        return False
    return finding.detail.get("count") == len(names) and explained.issuperset(names)


def _pruned(group: Group, kept: Mapping[Group, Kept], skeleton: Skeleton) -> list[Finding]:
    layers = kept.get(group)
    if not layers:
        return []
    routers = (p for p in skeleton.patterns if p.group is group and p.role is Role.ROUTER)
    return [pruned_finding(layers, next(routers).shape[0])]


def _lost(census: Census) -> frozenset[str]:
    """Names in files that could not be read, or whose data is past a file's end."""
    cut = (
        name
        for finding in census.findings
        if finding.code is Code.TRUNCATED
        for key in ("partly", "wholly")
        for name in finding.detail.get(key, ())  # type: ignore[attr-defined]
    )
    return frozenset((*census.unread, *cut))


def _is_settled(group: Group, judged: GroupAudit, options: Options) -> bool:
    if not options.judges(group) or judged.verdict in SETTLED:
        return True
    return judged.verdict is Verdict.DECLARED_ABSENT and group in options.allow_absent
