"""`StateBudget`: what one sequence's state costs, folded from the buffers that declare it.

Source: Metrale/metrale-inference-alpha model-arch glm5next_skeleton/budget.rs::StateBudget for the six
named fields and for which of them count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import lcm

from modelbones.buffers import PERSISTENT, Buffer, Grows, Home, ensure_length
from modelbones.errors import UsageError
from modelbones.ranks import ONE_RANK, Axis, Ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """The buffers of one name, over all the layers that hold them.

    Attributes:
        name: Budget term, e.g. "kda_recurrent".
        buffers: Each distinct buffer with the number of layers that hold one.
    """

    name: str
    buffers: tuple[tuple[Buffer, int], ...]

    @property
    def home(self) -> Home:
        """Where its buffers live; a term has one home."""
        return self.buffers[0][0].home

    @property
    def is_counted(self) -> bool:
        """Whether it is state kept between steps; activations and scratch are only named."""
        return self.home in PERSISTENT

    @property
    def num_layers(self) -> int:
        """Layers that hold its first buffer."""
        return self.buffers[0][1]

    def nbytes(self, *, tokens: int, ranks: Ranks = ONE_RANK) -> int:
        """Bytes of one sequence of `tokens`, all layers."""
        return sum(buffer.nbytes(tokens=tokens, ranks=ranks) * layers for buffer, layers in self.buffers)

    def row_bytes(self, grows: Grows, *, ranks: Ranks = ONE_RANK) -> int:
        """Bytes of one row of every buffer that grows so, all layers."""
        return sum(
            buffer.row_bytes(ranks=ranks) * layers for buffer, layers in self.buffers if buffer.per.grows is grows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBudget:
    """Bytes of state one sequence needs, per rank, as named terms.

    Attributes:
        terms: Every term, counted or only named, in layer order.
        ranks: How many ranks share each axis; one rank holds all by default.
    """

    terms: tuple[Term, ...]
    ranks: Ranks = ONE_RANK

    @classmethod
    def fold(cls, buffers: Iterable[Buffer]) -> StateBudget:
        """The budget of `buffers`, one entry for each layer that holds one."""
        by_name: dict[str, list[tuple[Buffer, int]]] = {}
        for buffer, layers in Counter(buffers).items():
            by_name.setdefault(buffer.term, []).append((buffer, layers))
        return cls(terms=tuple(Term(name=name, buffers=tuple(held)) for name, held in by_name.items()))

    def _row(self, name: str, grows: Grows) -> int:
        return sum(term.row_bytes(grows, ranks=self.ranks) for term in self.terms if term.name == name)

    @property
    def kda_recurrent(self) -> int:
        """KDA recurrent state, `[heads, head_dim, head_dim]` fp32 a layer; bytes per sequence."""
        return self._row("kda_recurrent", Grows.FIXED)

    @property
    def kda_conv(self) -> int:
        """KDA conv window, `[kernel - 1 + num_spec, conv_dim]` bf16 a layer; bytes per sequence."""
        return self._row("kda_conv", Grows.FIXED)

    @property
    def dsa_kv_per_token(self) -> int:
        """Latent row of the text DSA layers, `[kv_lora_rank]` bf16 each; bytes per token."""
        return self._row("dsa_kv", Grows.TOKEN)

    @property
    def dsa_indexer_per_token(self) -> int:
        """Indexer key, gate and validity of the text DSA layers; bytes per token."""
        return self._row("dsa_indexer", Grows.TOKEN)

    @property
    def mhc_highway_per_token(self) -> int:
        """The highway `[hc_mult, hidden]` fp32, an activation no sum counts; bytes per token."""
        return self._row("mhc_highway", Grows.TOKEN)

    @property
    def moe_routing_per_token(self) -> int:
        """Router logits fp32, top-k ids and weights, scratch no sum counts; bytes per token."""
        return self._row("moe_routing", Grows.TOKEN)

    @property
    def counted(self) -> tuple[Term, ...]:
        """The terms that are state kept between steps."""
        return tuple(term for term in self.terms if term.is_counted)

    def fixed(self) -> int:
        """Bytes per sequence that do not depend on its length."""
        return sum(term.row_bytes(Grows.FIXED, ranks=self.ranks) for term in self.counted)

    def per_token(self) -> int:
        """Bytes every further token adds; windows, pools and tails are not in it (see `terms`)."""
        return sum(term.row_bytes(Grows.TOKEN, ranks=self.ranks) for term in self.counted)

    def for_sequence(self, tokens: int) -> int:
        """Bytes kept for a sequence of `tokens`."""
        ensure_length(tokens)
        return sum(term.nbytes(tokens=tokens, ranks=self.ranks) for term in self.counted)

    def peak(self, tokens: int) -> int:
        """Most bytes kept at any moment on the way to `tokens`.

        Only ragged tails ever shrink, each when its pool completes. Shifting a moment by the
        pools' common multiple changes no tail, so the last such stretch holds a largest one.
        """
        ensure_length(tokens)
        pools = {b.per.k for term in self.counted for b, _ in term.buffers if b.per.grows is Grows.RAGGED}
        cycle = lcm(*pools)
        moments = {tokens}
        for k in pools:
            moments.update(range(tokens - (tokens + 1) % k, max(tokens - cycle, 0), -k))
        return max(self.for_sequence(moment) for moment in moments if moment >= 0)

    def per_rank(self, n: int) -> StateBudget:
        """The widest of `n` ranks' share, by the seeds' engine's rule ("metrale rule").

        Recurrent and conv state are cut by heads and the latent by elements; the indexer,
        the highway and the routing scratch stay whole on every rank. A share is never
        floored, since a reserve must not be short.
        """
        if n < 1:
            raise UsageError(f"ranks: found {n}; expected at least 1; name a real rank count")
        return replace(self, ranks=Ranks.of({Axis.HEADS: n, Axis.LATENT: n}))
