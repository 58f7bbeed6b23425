"""`Finding`: something a look at a checkpoint found, as a value.

The codes are a closed list; reports, exit codes and CI annotations rely on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Code(Enum):
    """What kind of thing was found."""

    MISSING = "missing"
    """A tensor the config asks for is not stored."""
    UNEXPECTED = "unexpected"
    """A stored tensor belongs to nothing the config declares."""
    SHAPE = "shape"
    """Stored with another shape than the config gives."""
    DTYPE = "dtype"
    """Stored in an element type its role does not permit."""
    GROUP_ABSENT = "group_absent"
    """Every tensor of a group (trunk, MTP layer, vision tower) is missing."""
    RENAMED = "renamed"
    """A group is stored under another writer's names."""
    SCALE = "scale"
    """A scale without its weight, or a packed weight without its scale."""
    QUANT_CONFLICT = "quant_conflict"
    """The config's quantisation claim contradicts what is stored."""
    HEADER = "header"
    """Something is wrong inside one file."""
    TRUNCATED = "truncated"
    """A file ends before its header says it does."""
    INDEX = "index"
    """Index, files and paths disagree."""


class Severity(Enum):
    """How much a finding weighs; any error makes `check` exit 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found.

    Attributes:
        code: Its kind, from the closed list.
        severity: How much it weighs.
        name: The tensor, file or group it is about.
        message: What was found and what was expected.
        why: What goes wrong if it is left so.
        fix: What to do.
        detail: More data for machines, JSON values only.
    """

    code: Code
    severity: Severity
    name: str
    message: str
    why: str = ""
    fix: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
