"""An MTP layer that the config says nothing about: what is stored decides."""

from __future__ import annotations

from modelbones.audit.groups import group_of
from modelbones.audit.words import one_finding
from modelbones.checkpoint.census import Census
from modelbones.findings import Code, Finding, Severity
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group


def stores_mtp(skeleton: Skeleton, census: Census) -> bool:
    """Whether any stored name belongs to an MTP layer."""
    return any(group_of(name, skeleton) is Group.MTP for name in census.tensors)


def judged_as_declared(place: str) -> Finding:
    """The note that an MTP layer is stored, and judged as if the config at `place` declared it."""
    return one_finding(
        Code.UNEXPECTED,
        Group.MTP.value,
        found=f"stored, and {place} does not say how many MTP layers there are; judged as if it declared one",
        expected="num_nextn_predict_layers in the config",
        fix="write num_nextn_predict_layers 1 into it",
        why="engines that go by the config do not draft with this layer",
        severity=Severity.NOTE,
    )
