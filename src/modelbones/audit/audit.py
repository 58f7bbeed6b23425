"""`audit`: a contract against a census, to verdicts by group and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from modelbones.audit.binding import Binder
from modelbones.audit.bound import Bound
from modelbones.audit.leftovers import pair_renamed, renamed_findings, stranger_findings
from modelbones.audit.pattern_findings import claim_findings, pattern_findings
from modelbones.audit.spelling import spelling_finding
from modelbones.audit.structure import logical_accounting
from modelbones.audit.words import one_finding
from modelbones.checkpoint.census import Census
from modelbones.contract import StructuralAccounting, account
from modelbones.dialects.recognise import Spelling, recognise
from modelbones.findings import Code, Finding, Severity
from modelbones.quant.claim import Claim
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group


class Verdict(Enum):
    """What became of one group."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    DECLARED_ABSENT = "declared but absent"
    ABSENT = "absent"
    """Neither declared nor stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a person asks of an audit.

    Attributes:
        only: Groups to judge; empty for all.
        allow_absent: Groups that may be absent as a whole.
    """

    only: frozenset[Group] = frozenset()
    allow_absent: frozenset[Group] = frozenset()

    def judges(self, group: Group) -> bool:
        """Whether findings about `group` are wanted."""
        return not self.only or group in self.only


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
    structural: StructuralAccounting
    structural_raw: StructuralAccounting

    @property
    def scheme(self) -> str:
        """The quantisation schemes found, joined by "+"; "none" when nothing is quantised."""
        quantised = [scheme for scheme, nbytes in self.schemes.items() if nbytes and scheme != "none"]
        return "+".join(quantised) or "none"

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)


_SERIOUSNESS = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def audit(skeleton: Skeleton, census: Census, claims: tuple[Claim, ...], options: Options | None = None) -> Audit:
    """Hold `skeleton`'s contract and `claims` against what `census` found."""
    options = options or Options()
    spellings = recognise(skeleton, census.tensors)
    binder = Binder(census, _lost(census), claims)
    bounds = [binder.bind(pattern) for spelling in spellings for pattern in spelling.patterns]
    logical = logical_accounting(bounds, binder.left)
    renamed = pair_renamed(bounds, binder.left)
    strangers = stranger_findings(binder.left, skeleton)
    groups = _groups(bounds, {bound.pattern.group for bound, _, _ in renamed}, set(strangers))
    findings = list(census.findings)
    for group, judged in groups.items():
        if options.judges(group):
            findings += [spelling_finding(each) for each in spellings if each.group is group and each.writers]
            findings += _group_findings(group, judged, bounds, options)
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
        structural=logical,
        structural_raw=account(skeleton.structural_tensor_set(), census.tensors.keys()),
    )


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


def _groups(bounds: list[Bound], renamed: set[Group], strange: set[Group]) -> dict[Group, GroupAudit]:
    sums = {group: _Sums() for group in (Group.TRUNK, Group.MTP, Group.VISION)}
    for bound in bounds:
        sums.setdefault(bound.pattern.group, _Sums()).add(bound)
    return {
        group: GroupAudit(
            verdict=_verdict(held, is_seen=group in renamed),
            bound=held.bound,
            required=held.required,
            tensors=held.tensors,
            parameters=held.parameters,
            nbytes=held.nbytes,
            schemes=dict(held.schemes),
        )
        for group, held in sums.items()
    }


def _verdict(held: _Sums, *, is_seen: bool) -> Verdict:
    if not held.required:
        return Verdict.ABSENT
    if held.bound == held.required and not held.missing and not held.wrong:
        return Verdict.COMPLETE
    is_seen = is_seen or bool(held.tensors or held.lost)
    return Verdict.PARTIAL if is_seen else Verdict.DECLARED_ABSENT


def _is_settled(group: Group, judged: GroupAudit, options: Options) -> bool:
    if not options.judges(group) or judged.verdict in (Verdict.COMPLETE, Verdict.ABSENT):
        return True
    return judged.verdict is Verdict.DECLARED_ABSENT and group in options.allow_absent


def _group_findings(group: Group, judged: GroupAudit, bounds: list[Bound], options: Options) -> list[Finding]:
    mine = [bound for bound in bounds if bound.pattern.group is group]
    if judged.verdict is not Verdict.DECLARED_ABSENT:
        return [finding for bound in mine for finding in pattern_findings(bound)]
    allowed = group in options.allow_absent
    return [
        one_finding(
            Code.GROUP_ABSENT,
            group.value,
            found=f"none of its {judged.required:,} tensors is stored",
            expected="all of them: the config declares this group",
            fix=_ABSENT_FIX.get(group, "fetch the files that hold it"),
            why=_ABSENT_WHY.get(group, "the model cannot run without it"),
            severity=Severity.NOTE if allowed else Severity.ERROR,
            detail={"required": judged.required},
        )
    ]


_ABSENT_FIX = {
    Group.MTP: "set num_nextn_predict_layers to 0, or graft the layer from the original; --allow-absent mtp accepts it",
    Group.VISION: "fetch the tower's files, or drop vision_config; --allow-absent vision accepts it",
}
_ABSENT_WHY = {
    Group.MTP: "an engine that is told to draft with it starts from uninitialised memory or fails",
    Group.VISION: "images are refused, or read through random weights",
}
