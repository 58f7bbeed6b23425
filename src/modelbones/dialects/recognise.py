"""Recognise how each group of a checkpoint is spelled, by evidence over all its names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from modelbones.checkpoint.stored import Stored
from modelbones.dialects.algebra import Change, Patterns, apply
from modelbones.dialects.known import DIALECTS, MLX, MOVES, TEXT_ONLY
from modelbones.dialects.respell import group_prefix, with_prefix
from modelbones.quant.form import base_of
from modelbones.quant.registry import PACKED_LEAVES
from modelbones.skeleton import Skeleton
from modelbones.tensors import EXPERT, LAYER, Group, Role, TensorPattern

FOREIGN = "foreign prefix"
_ANCHORS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How one group is spelled.

    Attributes:
        group: The group.
        patterns: Its contract, spelled so.
        writers: Whose spelling it is; empty when it is the published one.
        prefix: What stands before its names.
        published_prefix: What stands there in the release.
        kinds: Stored names mapped, by kind of change.
    """

    group: Group
    patterns: Patterns
    writers: tuple[str, ...]
    prefix: str
    published_prefix: str
    kinds: Mapping[str, int]

    @property
    def mapped(self) -> int:
        """Stored names that are spelled in another way than published."""
        return sum(self.kinds.values())


def recognise(
    skeleton: Skeleton, tensors: Mapping[str, Stored], unread: Container[str] = frozenset()
) -> tuple[Spelling, ...]:
    """The spelling of every group of `skeleton`'s contract in a checkpoint; `unread` names are in lost files."""
    groups = dict.fromkeys(pattern.group for pattern in skeleton.patterns)
    spellings: list[Spelling] = []
    for group in groups:
        others = [pattern for pattern in skeleton.patterns if pattern.group is not group]
        others += [pattern for spelling in spellings for pattern in spelling.patterns]
        spellings.append(_recognise_group(skeleton, group, tensors, unread, others))
    return tuple(spellings)


def _recognise_group(
    skeleton: Skeleton,
    group: Group,
    tensors: Mapping[str, Stored],
    unread: Container[str],
    others: Sequence[TensorPattern],
) -> Spelling:
    patterns = tuple(pattern for pattern in skeleton.patterns if pattern.group is group)
    published = group_prefix(skeleton, patterns)
    prefix = _prefix(patterns, published, tensors, unread, others)
    head = _head(patterns, tensors)
    patterns = with_prefix(patterns, published, prefix, head)
    kinds: Counter[str] = Counter()
    writers: dict[str, None] = {}
    for writer, move in MOVES:
        for change in tuple(move.changes(patterns)):
            if _speaks_for(change, tensors):
                patterns = apply(patterns, change)
                writers[writer] = None
                kinds[move.kind] += sum(_count(new, tensors) for new in change.new)
    if prefix != published:
        writers = {_prefix_writer(prefix): None, **writers}
        moved = sum(_count(pattern, tensors) for pattern in patterns if pattern.role is not Role.LM_HEAD)
        kinds["prefix"] = max(0, moved - sum(kinds.values()))
    if prefix == "" and published:
        # A base model saved alone has no head.
        patterns = tuple(replace(p, required=False) if p.role is Role.LM_HEAD else p for p in patterns)
    return Spelling(
        group=group,
        patterns=patterns,
        writers=tuple(writers),
        prefix=prefix,
        published_prefix=published,
        kinds=dict(kinds),
    )


def _prefix_writer(prefix: str) -> str:
    if prefix in MLX.prefixes.values():
        return MLX.name
    return TEXT_ONLY.name if prefix in ("model.", "") else FOREIGN


def _prefix(
    patterns: Patterns,
    published: str,
    tensors: Mapping[str, Stored],
    unread: Container[str],
    others: Sequence[TensorPattern],
) -> str:
    """The prefix under which most anchors of the group are stored; the published one in doubt.

    What `others` ask for is left to them: an MTP module apart has norms and layers as the trunk has.
    """
    own = (pattern for pattern in patterns if pattern.role is not Role.LM_HEAD)
    if any(is_stored(name, tensors) or is_stored(name, unread) for pattern in own for name in _firsts(pattern)):
        return published
    anchors = [
        name.removeprefix(published)
        for pattern in patterns
        if pattern.role is not Role.LM_HEAD and pattern.required
        for name in pattern.names_in(pattern.layers[0] if pattern.layers else None)[:1]
    ][:_ANCHORS]
    foreign = frozenset(name for pattern in others for name in _firsts(pattern))
    found: Counter[str] = Counter()
    for anchor in anchors:
        for name in tensors:
            ends = name.endswith(anchor) and (len(name) == len(anchor) or name[-len(anchor) - 1] == ".")
            if ends and name not in foreign:
                found[name[: -len(anchor)]] += 1
    prefix, count = found.most_common(1)[0] if found else (published, 0)
    # One name alone may end like an anchor by chance.
    return prefix if count > 1 or len(anchors) == 1 else published


def _head(patterns: Patterns, tensors: Mapping[str, Stored]) -> str | None:
    """The head's stored name without its leaf, when it is not the published one."""
    heads = [pattern.name for pattern in patterns if pattern.role is Role.LM_HEAD]
    if not heads or any(is_stored(name, tensors) for name in heads):
        return None
    stems = {name.rpartition(".")[0] for name in tensors if "lm_head." in name}
    return min((stem for stem in stems if stem == "lm_head" or stem.endswith(".lm_head")), key=len, default=None)


def _speaks_for(change: Change, tensors: Mapping[str, Stored]) -> bool:
    """Whether what is stored is the new spelling rather than the old one."""
    if {pattern.name for pattern in change.old} == {pattern.name for pattern in change.new}:
        # One tensor in the other order is a fault of its own; a spelling is what most have.
        return _shaped(change.new, tensors) > _shaped(change.old, tensors)
    new = sum(_count(pattern, tensors) for pattern in change.new)
    return bool(new) and not any(_count(pattern, tensors) for pattern in change.old)


def _shaped(patterns: Patterns, tensors: Mapping[str, Stored]) -> int:
    """Stored tensors that have their pattern's shape."""
    stored = ((tensors.get(name), pattern.shape) for pattern in patterns for name in _firsts(pattern))
    return sum(found is not None and found.shape == shape for found, shape in stored)


def _firsts(pattern: TensorPattern) -> Iterator[str]:
    """One name a layer, the first expert's."""
    for layer in pattern.layers or (None,):
        name = pattern.name.replace(EXPERT, "0")
        yield name if layer is None else name.replace(LAYER, str(layer))


def _count(pattern: TensorPattern, tensors: Mapping[str, Stored]) -> int:
    """Stored names of a pattern, of each layer's first expert those of all."""
    return sum(is_stored(name, tensors) for name in _firsts(pattern)) * max(1, pattern.num_experts)


def is_stored(name: str, tensors: Container[str]) -> bool:
    """Whether a weight is stored, plain or under a packed leaf."""
    if name in tensors:
        return True
    base = base_of(name)
    return any(base + leaf in tensors for leaf in PACKED_LEAVES)


READ_BY = {
    **{dialect.name: (dialect.read_by, dialect.lost_on) for dialect in DIALECTS.values()},
    FOREIGN: ("whoever wrote it", "loaders that go by published names find none of them"),
}
"""Writer -> (who reads it, who loses it)."""
