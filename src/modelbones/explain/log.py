"""`EngineLog`: what one vLLM start printed, and what it said of its flags."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from modelbones.units import GIB

HALF_CENT = Decimal("0.005")
"""What two printed decimals may hide, either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory for the cache on one rank, as far as the print tells it.

    Attributes:
        low: Least bytes it may stand for.
        high: Most bytes it may stand for; the same when bytes were printed.
        gib: As printed, in GiB; None when bytes were.
    """

    low: int
    high: int
    gib: Decimal | None = None

    @classmethod
    def of_gib(cls, gib: Decimal) -> Memory:
        """The interval two decimals leave open.

        >>> memory = Memory.of_gib(Decimal("2.30"))
        >>> memory.high - memory.low
        10737418
        """
        low, high = (int((gib + half) * GIB) for half in (-HALF_CENT, HALF_CENT))
        return cls(low=max(low, 0), high=high, gib=gib)

    @classmethod
    def of_bytes(cls, nbytes: int) -> Memory:
        """Memory printed, or asked for, in bytes."""
        return cls(low=nbytes, high=nbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddingLine:
    """ "Add N padding layers, may waste at most X% KV cache memory"."""

    layers: int
    percent: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class TooSmallLine:
    """The refusal to start when one longest request does not fit.

    Attributes:
        context: The longest context it was asked to serve.
        needed: GiB one such request takes.
        available: GiB there are.
        estimated_context: Tokens the engine says would fit; None when it says none do.
    """

    context: int
    needed: Decimal
    available: Decimal
    estimated_context: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """One start. Every field but the last two is None, or empty, where the log does not say.

    Attributes:
        version: The release or build.
        model: Its name or path, as it was given to the engine.
        max_model_len: Longest context of the engine's own line.
        tp: Tensor-parallel ranks.
        pp: Pipeline stages.
        dp: Data-parallel engines.
        dcp: Decode-context-parallel ranks.
        kv_dtype: The cache's dtype, in the engine's word.
        state_dtype: The recurrent state's dtype, in the engine's word.
        spec_method: Who drafts, in the engine's word; "" when no one does.
        num_spec: Tokens drafted a step.
        drafter: The drafter's name or path.
        prefix_caching: Whether it is on.
        block_size: `--block-size`.
        forced_block: Block size a backend set.
        max_batched_tokens: Tokens of one batch.
        block_tokens: "Setting attention block size to N tokens".
        padding_percent: "Padding mamba page size by X%".
        padding_layers: Distinct "Add N padding layers" lines.
        memories: "Available KV cache memory" lines, one a worker.
        exact_memory: Bytes of it, where the log has them.
        num_blocks: Blocks of the pool, over all engines where `is_block_sum`.
        is_block_sum: Whether `num_blocks` is the API server's sum over engines.
        cache_tokens: "GPU KV cache size: N tokens".
        concurrency: "Maximum concurrency for L tokens per request: X.XXx".
        concurrency_context: That L.
        too_small: The refusal to start.
        names_flags: Whether a line lists the flags, so that one it leaves out is at its default.
        starts: Starts seen in the log; this is the last that printed a figure.
    """

    version: str | None = None
    model: str | None = None
    max_model_len: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    dcp: int | None = None
    kv_dtype: str | None = None
    state_dtype: str | None = None
    spec_method: str | None = None
    num_spec: int | None = None
    drafter: str | None = None
    prefix_caching: bool | None = None
    block_size: int | None = None
    forced_block: int | None = None
    max_batched_tokens: int | None = None
    block_tokens: int | None = None
    padding_percent: Decimal | None = None
    padding_layers: tuple[PaddingLine, ...] = ()
    memories: tuple[Memory, ...] = ()
    exact_memory: tuple[int, ...] = ()
    num_blocks: int | None = None
    is_block_sum: bool = False
    cache_tokens: int | None = None
    concurrency: Decimal | None = None
    concurrency_context: int | None = None
    too_small: TooSmallLine | None = None
    names_flags: bool = False
    starts: int = 1

    @property
    def has_capacity(self) -> bool:
        """Whether it got as far as a capacity, or to refusing one."""
        return any(
            figure is not None for figure in (self.cache_tokens, self.concurrency, self.num_blocks, self.too_small)
        )

    @property
    def has_figures(self) -> bool:
        """Whether it printed any figure there is something to say of."""
        structure = (self.block_tokens, self.padding_percent)
        printed = any(figure is not None for figure in structure) or bool(self.padding_layers or self.memories)
        return printed or self.has_capacity

    @property
    def context(self) -> int | None:
        """The longest context: what the capacity lines say first, then the engine's own line."""
        if self.concurrency_context is not None:
            return self.concurrency_context
        return self.max_model_len if self.too_small is None else self.too_small.context

    @property
    def memory(self) -> Memory | None:
        """The smallest memory printed: the pool is made of the least over the ranks."""
        printed = min(self.memories, key=lambda memory: memory.high, default=None)
        if self.exact_memory:
            least = min(self.exact_memory)
            if printed is None or printed.low <= least <= printed.high:
                return Memory.of_bytes(least)
        return printed

    @property
    def ranks(self) -> int:
        """Ranks that print a memory of their own, as far as the log says."""
        return (self.tp or 1) * (self.pp or 1) * (self.dp or 1)
