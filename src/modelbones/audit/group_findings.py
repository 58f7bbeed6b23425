"""Findings about one group: absent as a whole, or tensor by tensor."""

from __future__ import annotations

from modelbones.audit.bound import Bound
from modelbones.audit.options import Options
from modelbones.audit.pattern_findings import pattern_findings
from modelbones.audit.verdicts import GroupAudit, Verdict
from modelbones.audit.words import one_finding
from modelbones.findings import Code, Finding, Severity
from modelbones.tensors import Group


def group_findings(group: Group, judged: GroupAudit, bounds: list[Bound], options: Options) -> list[Finding]:
    """What one group lacks; one finding when it is absent altogether."""
    if judged.verdict is Verdict.ABSENT:
        return []
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
