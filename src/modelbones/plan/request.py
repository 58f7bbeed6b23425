"""`PlanRequest`: everything a person asks of `plan`, checked as one."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.plan.gpus import Gpu
from modelbones.skeleton import Skeleton

if TYPE_CHECKING:
    from modelbones.checkpoint.census import Census
    from modelbones.quant.recipe import Recipe

MAX_BATCHED_TOKENS = 8192
"""vLLM's own default for tokens of one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Where the memory for state comes from: exactly one of three ways.

    Attributes:
        overhead: Bytes of activations, graphs and libraries a rank, beside the weights.
        kv_memory: Bytes for state a rank, as `--kv-cache-memory-bytes` gives them.
        num_blocks: Blocks of the pool, as a log gives them.
    """

    overhead: int | None = None
    kv_memory: int | None = None
    num_blocks: int | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.overhead, self.kv_memory, self.num_blocks) if value is not None]
        if len(given) != 1:
            raise UsageError(
                "plan: found "
                + (f"{len(given)} of" if given else "none of")
                + " --overhead, --kv-memory and --num-blocks; expected one; activation and graph memory do not follow "
                "from a config: give what the engine measured (--overhead) or what it says is left (--kv-memory)"
            )
        if given[0] < 0:
            raise UsageError(f"plan: found {given[0]} bytes or blocks; expected 0 or more; correct it")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """One question: this model, on these ranks, with this engine.

    Attributes:
        skeleton: The model.
        engine: "vllm", "metrale" or "transformers".
        version: The engine's version; None for engines without versions.
        assume: A known version whose rules stand in for an unknown one.
        gpu: The card; None when only memory or blocks for state were given.
        gpu_count: Cards at hand.
        memory: Where the memory for state comes from.
        memory_fraction: Share of a card the engine may use.
        tp, ep, pp, dp, dcp: Ranks of tensor, expert, pipeline, data and
            decode-context parallelism.
        context: Longest sequence in tokens.
        concurrency: Sequences at once, over all data-parallel replicas.
        kv_dtype: The engine's word for the element type of keys, values and latents.
        state_dtype: Element type of recurrent state; None for the engine's default.
        num_spec: Tokens drafted a step.
        spec_on: Whether the MTP layer drafts.
        draft: A draft model's skeleton; None when there is none.
        max_batched_tokens: Tokens of one step.
        block_size: Tokens of a block; None lets the engine choose.
        prefix_caching: Whether it is on.
        recipe: How the weights are quantised when no checkpoint is read.
        census: The checkpoint the weights are read from; None for the contract's own sizes.
        most_context: The longest context the model declares.
    """

    skeleton: Skeleton
    engine: str
    version: str | None
    memory: Memory
    context: int
    most_context: int
    assume: str | None = None
    gpu: Gpu | None = None
    gpu_count: int = 1
    memory_fraction: Decimal = Decimal("0.9")
    tp: int = 1
    ep: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    concurrency: int = 1
    kv_dtype: str = "auto"
    state_dtype: DType | None = None
    num_spec: int = 0
    spec_on: bool = False
    draft: Skeleton | None = None
    max_batched_tokens: int = MAX_BATCHED_TOKENS
    block_size: int | None = None
    prefix_caching: bool = True
    recipe: Recipe | None = None
    census: Census | None = None

    def __post_init__(self) -> None:
        if self.gpu is None and self.memory.overhead is not None:
            raise UsageError("plan: found --overhead without --gpu; expected a card to take it from; name one")
        if not 0 < self.memory_fraction <= 1:
            raise UsageError(
                f"--memory-fraction: found {self.memory_fraction}; expected more than 0, at most 1; write 0.9 for 90 %"
            )
        ranks = self.tp * self.pp * self.dp
        if self.gpu is not None and ranks != self.gpu_count:
            raise UsageError(
                f"--gpu: found {self.gpu_count} x {self.gpu.name} for {ranks} ranks (tp {self.tp} x pp {self.pp} x "
                f"dp {self.dp}); expected as many cards as ranks; change either"
            )
        if self.pp > len(self.skeleton.layers):
            raise UsageError(f"--pp: found {self.pp} stages for {len(self.skeleton.layers)} layers; expected fewer")
        sharers = self.tp * self.dp
        if self.ep not in (1, sharers):
            raise UsageError(
                f"--ep: found {self.ep} for {sharers} ranks of a stage (tp {self.tp} x dp {self.dp}); expected 1 or "
                f"{sharers}: every rank of a stage holds its share of the experts; change either"
            )

    @property
    def per_replica(self) -> int:
        """Sequences each data-parallel replica serves when they are spread evenly, rounded up."""
        return -(-self.concurrency // self.dp)

    @property
    def usable(self) -> int | None:
        """Bytes of a card the engine may use; None without a card."""
        return None if self.gpu is None else int(self.gpu.memory * self.memory_fraction)

    @property
    def card_bytes(self) -> int | None:
        """What everything on a rank must stay within; None without a card.

        Memory for state that is given in bytes or blocks is taken whatever the fraction says.
        """
        if self.gpu is None:
            return None
        return self.usable if self.memory.overhead is not None else self.gpu.memory
