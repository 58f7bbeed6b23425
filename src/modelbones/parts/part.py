"""`Part`: one building block of a layer, as the tensors and buffers it brings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from modelbones.buffers import Buffer
from modelbones.tensors import TensorPattern


class StateKind(Enum):
    """The kind of state a mixer keeps for a sequence."""

    KDA_RECURRENT = "kda_recurrent"
    """Recurrent `[heads, head_dim, head_dim]` fp32 plus a causal-conv window."""
    SPARSE_KV = "sparse_kv"
    """Paged latent rows plus the indexer's own rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One building block.

    Attributes:
        name: What it is, e.g. "kda".
        tensors: Its tensors, named from the layer down ("self_attn.q_proj.weight").
        buffers: The state it keeps for one sequence, in one layer.
        state: The kind of state a mixer keeps; None for what is no mixer.
    """

    name: str
    tensors: tuple[TensorPattern, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    state: StateKind | None = None
