"""The moves that turn a contract's patterns into what another writer stores.

Each move takes the patterns of one group and gives the pairs it would change: the
patterns it takes, and those that stand in their place. Applied to a contract they give
what to look for and what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from modelbones.ranks import Axis, split
from modelbones.tensors import EXPERT, TensorPattern

Patterns = tuple[TensorPattern, ...]


class Change(NamedTuple):
    """Patterns that go and patterns that come."""

    old: Patterns
    new: Patterns


class Move(Protocol):
    """One way a writer spells things."""

    @property
    def kind(self) -> str:
        """What it changes, for reports: "fused_conv"."""

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Everything it would change in `patterns`."""


def logical(pattern: TensorPattern) -> tuple[str, ...]:
    """The contract's names a pattern stands for."""
    return (pattern.name,) if pattern.stands_for is None else pattern.stands_for


def apply(patterns: Patterns, change: Change) -> Patterns:
    """`patterns` after `change`, the new ones where the first old one stood."""
    result: list[TensorPattern] = []
    for pattern in patterns:
        if pattern is change.old[0]:
            result.extend(change.new)
        if not any(pattern is old for old in change.old):
            result.append(pattern)
    return tuple(result)


def _under(patterns: Patterns, leaf: str) -> Iterator[tuple[str, TensorPattern]]:
    """(stem, pattern) of every pattern whose name ends with `leaf` at a dot."""
    for pattern in patterns:
        if pattern.name == leaf or pattern.name.endswith(f".{leaf}"):
            yield pattern.name[: -len(leaf)], pattern


def _siblings(patterns: Patterns, leaves: tuple[str, ...]) -> Iterator[tuple[str, Patterns]]:
    """(stem, patterns) wherever all of `leaves` stand side by side."""
    for stem, first in _under(patterns, leaves[0]):
        others = [
            next((p for p in patterns if p.name == stem + leaf and p.layers == first.layers), None)
            for leaf in leaves[1:]
        ]
        found = tuple(other for other in others if other is not None)
        if len(found) == len(others):
            yield stem, (first, *found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A leaf under another name."""

    kind: str
    old: str
    new: str

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Every tensor of that leaf."""
        for stem, pattern in _under(patterns, self.old):
            yield Change((pattern,), (replace(pattern, name=stem + self.new, stands_for=logical(pattern)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat:
    """Leaves of one module joined along a dimension."""

    kind: str
    old: tuple[str, ...]
    new: str
    dim: int = 0

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Every module that has all of the leaves."""
        for stem, found in _siblings(patterns, self.old):
            yield Change(found, (_joined(found, stem + self.new, self.dim),))


def _joined(found: Patterns, name: str, dim: int) -> TensorPattern:
    shape = list(found[0].shape)
    shape[dim] = sum(pattern.shape[dim] for pattern in found)
    names = tuple(name for pattern in found for name in logical(pattern))
    return replace(found[0], name=name, shape=tuple(shape), stands_for=names, split=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """All experts of a layer in one tensor, several leaves joined by rows first.

    Attributes:
        old: Leaves below "experts.N.".
        new: Leaf below the MLP.
        is_transposed: Whether rows and columns change places.
    """

    kind: str
    old: tuple[str, ...]
    new: str
    is_transposed: bool = False

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Every routed MLP that has all of the leaves."""
        leaves = tuple(f"experts.{EXPERT}.{leaf}" for leaf in self.old)
        for stem, found in _siblings(patterns, leaves):
            joined = _joined(found, stem + self.new, 0)
            experts = found[0].num_experts
            shape = joined.shape[::-1] if self.is_transposed else joined.shape
            cut = split(Axis.EXPERTS, 0, experts)
            stacked = replace(joined, shape=(experts, *shape), num_experts=0, stacked=experts, split=cut)
            yield Change(found, (stacked,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstack:
    """A stacked tensor of the contract as one tensor for each expert and leaf.

    The contract's one tensor is then many, so none of them counts as it alone.
    """

    kind: str
    old: str
    new: tuple[str, ...]

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Every stacked MLP of that leaf."""
        for stem, pattern in _under(patterns, self.old):
            experts, rows, columns = pattern.shape
            each = replace(
                pattern, shape=(rows // len(self.new), columns), num_experts=experts, stands_for=(), split=()
            )
            names = (f"{stem}experts.{EXPERT}.{leaf}" for leaf in self.new)
            yield Change((pattern,), tuple(replace(each, name=name) for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """A leaf under its own name with its dimensions in another order or number."""

    kind: str
    leaf: str
    shape: Callable[[tuple[int, ...]], tuple[int, ...]]

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Every tensor of that leaf."""
        for _, pattern in _under(patterns, self.leaf):
            shape = self.shape(pattern.shape)
            if shape != pattern.shape:
                yield Change((pattern,), (replace(pattern, shape=shape, stands_for=logical(pattern), split=()),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorb:
    """MLA's `kv_b_proj` as two stacks of matrices, one a head: absorbed into query and output.

    `embed_q` is `[heads, kv_lora_rank, qk_nope_head_dim]`, `unembed_out` is
    `[heads, v_head_dim, kv_lora_rank]`. Source: Blaizzy/mlx-vlm mlx_vlm/models/glm5_next/language.py.
    """

    kind: str

    def changes(self, patterns: Patterns) -> Iterator[Change]:
        """Every attention block that has `kv_b_proj`; its head sizes follow from `o_proj`."""
        for stem, (kv_b, o_proj) in _siblings(patterns, ("kv_b_proj.weight", "o_proj.weight")):
            heads = o_proj.split[0].blocks[0][1] if o_proj.split else 0
            if not heads:
                continue
            rows, rank = kv_b.shape
            v_head_dim = o_proj.shape[1] // heads
            nope = rows // heads - v_head_dim
            query = replace(kv_b, name=f"{stem}embed_q.weight", shape=(heads, rank, nope), stands_for=logical(kv_b))
            out = replace(kv_b, name=f"{stem}unembed_out.weight", shape=(heads, v_head_dim, rank), stands_for=())
            yield Change((kv_b,), (replace(query, split=()), replace(out, split=())))
