"""`LayerState`: one layer's state as an engine sees it, still in the skeleton's own buffers.

Sizes stay in the buffers; an engine only adds its layout. A layer may hold several states
(a latent and an indexer), or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from modelbones.buffers import Buffer, Grows
from modelbones.dtypes import DType


class Kind(Enum):
    """What a state is to the allocator."""

    RECURRENT = "recurrent"
    """A recurrent state and a conv window, fixed in a sequence's length."""
    KV = "kv"
    """Keys and values of every token."""
    WINDOW = "window"
    """Keys and values of the last tokens only."""
    LATENT = "latent"
    """One latent row a token for all heads."""
    INDEX = "index"
    """The indexer's keys, one a token or a pool."""
    TAIL = "tail"
    """The indexer's rows of the pool that is not complete yet."""


class Mechanism(Enum):
    """Which recurrence keeps a state; dtype and conv rules differ."""

    KDA = "kda"
    GDN = "gdn"
    MAMBA2 = "mamba2"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerState:
    """One state of one layer.

    Attributes:
        layer: Index of the layer; drafter layers count from 0 again.
        kind: What it is to the allocator.
        buffers: The skeleton's buffers it is made of.
        mechanism: The recurrence, for a recurrent state.
        is_draft: Whether a drafter's layer holds it, not the model's.
    """

    layer: int
    kind: Kind
    buffers: tuple[Buffer, ...]
    mechanism: Mechanism | None = None
    is_draft: bool = False

    @property
    def elements(self) -> int:
        """Elements of one row over its buffers, on a rank that holds it whole."""
        return sum(prod(buffer.shape) for buffer in self.buffers)

    @property
    def window(self) -> int:
        """Tokens of its sliding window; 0 for a state that has none."""
        return max((b.per.k for b in self.buffers if b.per.grows is Grows.WINDOW), default=0)

    @property
    def pool(self) -> int:
        """Tokens an index row stands for: the pool of a pooled indexer, else 1."""
        per = self.buffers[0].per
        return per.k if per.grows is Grows.POOL else per.reserve_step


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStates:
    """A model as an engine's allocator sees it.

    Attributes:
        model_type: The config's word; some of the engine's rules name models.
        dtype: The model's own element type.
        states: Every layer's states, in layer order; the MTP layer's are apart.
        mtp: The states of the MTP layer; empty when the model has none.
        query_heads: Every distinct count of heads that tensor parallelism must divide.
    """

    model_type: str
    dtype: DType
    states: tuple[LayerState, ...]
    mtp: tuple[LayerState, ...] = ()
    query_heads: tuple[int, ...] = ()
