"""How a tensor or a buffer is shared out over ranks, and what the widest rank holds.

A `Split` says along which dimension a thing can be cut and into which units; a
`Ranks` says how many ranks cut each axis. Whoever knows an engine's rule makes the
`Ranks`; the records only say what could be cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from modelbones.errors import UsageError
from modelbones.units import ceil_div


class Axis(Enum):
    """What a cut follows. An engine decides which of these its ranks divide."""

    HEADS = "heads"
    """Attention or recurrent heads: tensor parallelism divides them everywhere."""
    LATENT = "latent"
    """Elements of a latent row all heads share: most engines replicate it."""
    FFN = "ffn"
    """Rows of a dense or shared MLP's intermediate width."""
    EXPERT_FFN = "expert_ffn"
    """The same inside a routed expert: whole under expert parallelism."""
    EXPERTS = "experts"
    """Whole routed experts."""
    VOCAB = "vocab"
    """Rows of the embedding and of the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How many ranks divide each axis; an axis not named is held whole."""

    counts: tuple[tuple[Axis, int], ...]

    @classmethod
    def of(cls, counts: Mapping[Axis, int]) -> Ranks:
        """Ranks from a mapping; a count below 1 is refused."""
        for axis, count in counts.items():
            if count < 1:
                raise UsageError(f"ranks: found {count} for {axis.value}; expected at least 1; name a real rank count")
        return cls(counts=tuple(sorted(counts.items(), key=lambda item: item[0].value)))

    def along(self, axis: Axis) -> int:
        """Ranks that divide `axis`, 1 when it is held whole."""
        return next((count for named, count in self.counts if named is axis), 1)


ONE_RANK = Ranks(counts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One dimension that can be cut, as blocks of whole units.

    Attributes:
        axis: What the cut follows.
        dim: The dimension that is cut.
        blocks: `(size, units)` of each block along `dim`, in order; a fused tensor
            such as q|k|v has one for each member, and every member is cut by itself.
    """

    axis: Axis
    dim: int
    blocks: tuple[tuple[int, int], ...]

    def widest(self, ranks: Ranks) -> int:
        """Elements along `dim` on the rank that holds most: whole units, never floored."""
        count = ranks.along(self.axis)
        return sum(ceil_div(units, count) * (size // units) for size, units in self.blocks)


def split(axis: Axis, dim: int, size: int, units: int | None = None) -> tuple[Split, ...]:
    """The common case: one block of `units` units (each element its own when unset)."""
    return (Split(axis=axis, dim=dim, blocks=((size, size if units is None else units),)),)


def widest_shape(shape: tuple[int, ...], splits: tuple[Split, ...], ranks: Ranks) -> tuple[int, ...]:
    """`shape` as the rank that holds most of it sees it."""
    dims = list(shape)
    for cut in splits:
        dims[cut.dim] = cut.widest(ranks)
    return tuple(dims)
