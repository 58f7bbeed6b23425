"""`Buffer`: one piece of a sequence's state, and the only arithmetic on it.

Budget, reserve, the live ledger and every engine are folds over these records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.ranks import ONE_RANK, Ranks, Split, widest_shape
from modelbones.units import whole_bytes


def ensure_length(tokens: int) -> None:
    """Refuse a negative number of tokens."""
    if tokens < 0:
        raise UsageError(f"tokens: found {tokens}; expected 0 or more; a sequence cannot be shorter than empty")


class Grows(Enum):
    """How the rows of a buffer follow the tokens T of its sequence."""

    FIXED = "fixed"
    """One row, whatever T."""
    TOKEN = "token"
    """T rows."""
    POOL = "pool"
    """floor(T / k) rows: one a complete pool."""
    WINDOW = "window"
    """min(T, k) rows."""
    RAGGED = "ragged"
    """T mod k rows: the pool that is not complete yet."""
    LAST = "last"
    """One row once T >= k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a buffer grows, with the `k` of that rule where it has one.

    Attributes:
        grows: The rule.
        k: Tokens: the pool, the window or the threshold; 1 where the rule has none.
        reserve_step: A reserve for a longest context is rounded down to a multiple
            of this many rows (a trailing partial pool is not a pool).
    """

    grows: Grows
    k: int = 1
    reserve_step: int = 1

    def rows(self, tokens: int) -> int:
        """Rows held for a sequence of `tokens`."""
        ensure_length(tokens)
        match self.grows:
            case Grows.FIXED:
                return 1
            case Grows.TOKEN:
                return tokens
            case Grows.POOL:
                return tokens // self.k
            case Grows.WINDOW:
                return min(tokens, self.k)
            case Grows.RAGGED:
                return tokens % self.k
            case Grows.LAST:
                return int(tokens >= self.k)

    def peak_rows(self, tokens: int) -> int:
        """Most rows held at any moment on the way to `tokens`."""
        rows = self.rows(tokens)
        return min(tokens, self.k - 1) if self.grows is Grows.RAGGED else rows

    def reserved_rows(self, max_context: int) -> int:
        """Rows to reserve once, for a sequence of up to `max_context` tokens."""
        rows = self.peak_rows(max_context)
        return rows - rows % self.reserve_step


FIXED = Growth(grows=Grows.FIXED)
TOKEN = Growth(grows=Grows.TOKEN)


def token_in_pools(k: int) -> Growth:
    """One row a token, reserved in whole pools of `k` tokens."""
    return Growth(grows=Grows.TOKEN, reserve_step=k)


def window(k: int) -> Growth:
    """The last `k` tokens."""
    return Growth(grows=Grows.WINDOW, k=k)


def pool(k: int) -> Growth:
    """One row for each complete pool of `k` tokens."""
    return Growth(grows=Grows.POOL, k=k)


def ragged(k: int) -> Growth:
    """The tokens of the pool of `k` that is not complete yet."""
    return Growth(grows=Grows.RAGGED, k=k)


def last(k: int) -> Growth:
    """One row once `k` tokens are there."""
    return Growth(grows=Grows.LAST, k=k)


class Home(Enum):
    """Where a buffer lives; each answer about memory is a filter on this."""

    PAGED = "paged"
    """In the engine's KV blocks."""
    SLOT = "slot"
    """In a slot of a pool the engine makes once."""
    OWNED = "owned"
    """In the sequence's own allocation, made when it starts."""
    SCRATCH = "scratch"
    """In a work area of the step; it holds nothing between steps."""
    ACTIVATION = "activation"
    """An activation of the forward pass; named, never counted as state."""


PERSISTENT = frozenset({Home.PAGED, Home.SLOT, Home.OWNED})


class Rewind(Enum):
    """What taking tokens back asks of a buffer."""

    TRUNCATE = "truncate"
    """Forget rows past the new end."""
    SNAPSHOT = "snapshot"
    """Only a copy taken earlier can bring the old value back."""
    REPLAY = "replay"
    """Rows must be computed again: those of the unfinished pool, or those that left the window."""
    NOTHING = "nothing"
    """It holds nothing between steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One device buffer of a sequence's state.

    Attributes:
        name: Leaf name, unique in its layer, e.g. "indexer.gate".
        term: The budget term it counts under, e.g. "dsa_indexer".
        shape: Elements of one row, e.g. (index_head_dim,).
        dtype: Element type.
        per: How its rows follow the sequence's tokens.
        home: Where it lives; budget, reserve and the live ledger are filters on it.
        split: How ranks may share it; empty when every rank holds it whole.
        rewind: What taking tokens back asks of it.
        draft_rows: What dimension 0 gains for each speculative token in flight.
    """

    name: str
    term: str
    shape: tuple[int, ...]
    dtype: DType
    per: Growth
    home: Home
    rewind: Rewind
    split: tuple[Split, ...] = ()
    draft_rows: int = 0

    def row_bytes(self, *, ranks: Ranks = ONE_RANK) -> int:
        """Bytes of one row on the rank that holds most of it."""
        return whole_bytes(prod(widest_shape(self.shape, self.split, ranks)) * self.dtype.bits)

    def nbytes(self, *, tokens: int, ranks: Ranks = ONE_RANK) -> int:
        """Bytes for one sequence of `tokens`, on the rank that holds most of it."""
        return self.row_bytes(ranks=ranks) * self.per.rows(tokens)

    def reserved_nbytes(self, *, max_context: int) -> int:
        """Bytes to reserve once for one sequence of up to `max_context` tokens."""
        return self.row_bytes() * self.per.reserved_rows(max_context)

    def drafting(self, num_spec: int) -> Buffer:
        """This buffer while `num_spec` speculative tokens are in flight."""
        if num_spec < 0:
            raise UsageError(f"num_spec: found {num_spec}; expected 0 or more; name the tokens drafted a step")
        if not self.draft_rows or not num_spec:
            return self
        return replace(self, shape=(self.shape[0] + self.draft_rows * num_spec, *self.shape[1:]))
