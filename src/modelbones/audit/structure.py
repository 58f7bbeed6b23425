"""The seed's structural accounting, on logical names: whatever the dialect and the scheme."""

from __future__ import annotations

from collections.abc import Iterable

from modelbones.audit.bound import Bound
from modelbones.contract import StructuralAccounting, is_deferred
from modelbones.tensors import TensorPattern


def logical_accounting(bounds: list[Bound], left: Iterable[str]) -> StructuralAccounting:
    """Account the contract's own names; `left` are the stored names no pattern asked for."""
    required, deferred = 0, 0
    missing: list[str] = []
    for bound in bounds:
        pattern = bound.pattern
        if not pattern.required:
            continue
        stored = (pattern.count - len(bound.absent) - bound.lost) * pattern.logical_each
        if not pattern.is_structural:
            deferred += stored
            continue
        required += pattern.count * pattern.logical_each
        missing += _missing(pattern, {*bound.absent, *bound.lost_names})
    strangers = [name for name in left if not is_deferred(name)]
    deferred += sum(1 for name in left if is_deferred(name))
    return StructuralAccounting(
        required=required,
        bound=required - len(missing),
        missing=tuple(sorted(missing)),
        unexpected=tuple(sorted(strangers)),
        deferred=deferred,
    )


def _missing(pattern: TensorPattern, absent: set[str]) -> list[str]:
    """The contract's names for what `pattern` does not have; a structural pattern has no experts."""
    if not absent:
        return []
    return [
        logical
        for layer in pattern.layers or (None,)
        if pattern.names_in(layer)[0] in absent
        for logical in pattern.logical_names(layer)
    ]
