"""`Part`: one building block of a layer, as the tensors and buffers it brings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from modelbones.buffers import Buffer
from modelbones.tensors import TensorPattern


class StateKind(Enum):
    """The kind of state a mixer keeps for a sequence."""

    KDA_RECURRENT = "kda_recurrent"
    """Recurrent `[heads, head_dim, head_dim]` fp32 plus a causal-conv window."""
    SPARSE_KV = "sparse_kv"
    """Paged latent rows plus the indexer's own rows."""
    LATENT_KV = "latent_kv"
    """Paged latent rows, with the rotary part of the key where there is one."""
    COMPRESSED_KV = "compressed_kv"
    """A window of rows, one row for each complete pool of older tokens, and the pool being filled."""
    KV = "kv"
    """Paged keys and values of every token."""
    WINDOW_KV = "window_kv"
    """Paged keys and values of the last tokens."""
    GDN_RECURRENT = "gdn_recurrent"
    """Recurrent `[value heads, key dim, value dim]` fp32 plus a causal-conv window."""
    SSM = "ssm"
    """Mamba-2 state `[heads, head dim, state size]` fp32 plus a causal-conv window."""


KV_KINDS = frozenset(
    {StateKind.SPARSE_KV, StateKind.LATENT_KV, StateKind.COMPRESSED_KV, StateKind.KV, StateKind.WINDOW_KV}
)
"""The kinds that live in the KV blocks of an engine."""


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

    def under(self, stem: str) -> Part:
        """This part with `stem` in front of its tensors' names."""
        return replace(self, tensors=tuple(replace(tensor, name=stem + tensor.name) for tensor in self.tensors))
