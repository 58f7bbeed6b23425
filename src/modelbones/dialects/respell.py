"""Write a contract in a dialect: what `synth --dialect` stores."""

from __future__ import annotations

from dataclasses import replace

from modelbones.dialects.algebra import Patterns, apply, logical
from modelbones.dialects.known import Dialect
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group, Role, TensorPattern


def group_prefix(skeleton: Skeleton, patterns: Patterns) -> str:
    """What stands before the names of one group, up to the layers."""
    names = [pattern.name for pattern in patterns if pattern.role is not Role.LM_HEAD]
    if all(name.startswith(skeleton.prefix) for name in names) and skeleton.prefix:
        return skeleton.prefix
    first, last = min(names, default=""), max(names, default="")
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:shared].partition("layers.")[0].rpartition(".")[0] + "." if "." in first[:shared] else ""


def with_prefix(patterns: Patterns, old: str, new: str, head: str | None) -> Patterns:
    """`patterns` of one group under another prefix, the head under its own name."""
    if old == new and head is None:
        return patterns
    return tuple(_moved(pattern, old, new, head) for pattern in patterns)


def _moved(pattern: TensorPattern, old: str, new: str, head: str | None) -> TensorPattern:
    if pattern.role is Role.LM_HEAD:
        return pattern if head is None else replace(pattern, name=f"{head}.weight", stands_for=logical(pattern))
    if old == new or not pattern.name.startswith(old):
        return pattern
    return replace(pattern, name=new + pattern.name.removeprefix(old), stands_for=logical(pattern))


def respelled(skeleton: Skeleton, dialect: Dialect | None) -> Patterns:
    """The contract of `skeleton` as `dialect` spells it; as published when there is none."""
    if dialect is None:
        return skeleton.patterns
    result: list[TensorPattern] = []
    for group in Group:
        patterns = tuple(pattern for pattern in skeleton.patterns if pattern.group is group)
        for move in dialect.moves:
            for change in tuple(move.changes(patterns)):
                patterns = apply(patterns, change)
        prefix = group_prefix(skeleton, patterns)
        # An MTP module apart stays apart: under the trunk's prefix it would take the trunk's names.
        is_apart = group is Group.MTP and prefix != skeleton.prefix
        head = dialect.head if dialect.head != "lm_head" else None
        result += with_prefix(patterns, prefix, prefix if is_apart else dialect.prefixes.get(group, prefix), head)
    return tuple(result)
