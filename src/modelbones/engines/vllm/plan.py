"""`CachePlan`: what a vLLM start makes of its memory, in the engine's words and in plain ones.

Source of both log formulas: vllm-project/vllm
vllm/v1/core/kv_cache_utils.py::_report_kv_cache_config, get_max_concurrency_for_kv_cache_config.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.engines.vllm.alignment import Alignment, align
from modelbones.engines.vllm.groups import Group, PaddingLayers, group_layers
from modelbones.engines.vllm.settings import VllmSettings
from modelbones.engines.vllm.states import ModelStates
from modelbones.engines.vllm.stored import stored_states
from modelbones.engines.vllm.versions import LogFormula, Rules
from modelbones.errors import UsageError
from modelbones.search import last_true


@dataclass(frozen=True, slots=True, kw_only=True)
class TooSmall:
    """The engine would refuse to start: one longest request does not fit.

    Attributes:
        needed_bytes: What one request of the longest context takes, as logged.
        available_bytes: What the engine compares it with: the memory given, without the null
            block's bytes from 0.29 on.
        max_context: The "estimated maximum model length", in tokens.
    """

    needed_bytes: int
    available_bytes: int
    max_context: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """The cache of one start, per rank.

    Attributes:
        rules: The version's rules that were applied.
        is_assumed: Whether they stand in for a version that is not known.
        alignment: The block, and the padding of a recurrent page.
        groups: The groups that share its block ids.
        padding_layers: Layers that only fill a group.
        bytes_per_block: Bytes of one block id over all groups.
        num_blocks: Blocks of the pool, the null block included, as logged.
        memory: Bytes they were made of; None when the blocks were given.
        max_model_len: Longest sequence in tokens.
        dcp: Ranks that share a context.
    """

    rules: Rules
    is_assumed: bool
    alignment: Alignment
    groups: tuple[Group, ...]
    padding_layers: tuple[PaddingLayers, ...]
    bytes_per_block: int
    num_blocks: int
    memory: int | None
    max_model_len: int
    dcp: int

    @property
    def block_tokens(self) -> int:
        """Tokens of a block of full attention: the logged attention block size."""
        return self.alignment.block_tokens

    @property
    def padding_percent(self) -> float:
        """What padding adds to a recurrent page, in percent, as logged."""
        return self.alignment.padding_percent

    def blocks_of(self, context: int) -> int:
        """Blocks a request of `context` tokens holds, over all groups."""
        if not 0 < context <= self.max_model_len:
            raise UsageError(
                f"vllm: context: found {context}; expected 1 to {self.max_model_len}, "
                "the longest sequence; raise max_model_len or lower the context"
            )
        return sum(group.blocks(context) for group in self.groups)

    @property
    def blocks_per_request(self) -> int:
        """Blocks a request of the longest context holds."""
        return self.blocks_of(self.max_model_len)

    @property
    def fixed_blocks(self) -> int:
        """Of these, the blocks it holds whatever its length."""
        return sum(group.fixed_blocks or 0 for group in self.groups)

    @property
    def usable_blocks(self) -> int:
        """Blocks requests can hold: block 0 is the null block, in every version."""
        return max(self.num_blocks - 1, 0)

    @property
    def logged_concurrency(self) -> float:
        """ "Maximum concurrency for L tokens per request", before rounding to two decimals."""
        return self.num_blocks / self.blocks_per_request

    @property
    def logged_tokens(self) -> int:
        """ "GPU KV cache size: N tokens", by the version's own formula.

        Later versions multiply a float, so the figure is that float's whole part.
        """
        if self.rules.log_formula is LogFormula.REQUESTS:
            return int(self.logged_concurrency * self.max_model_len)
        return self.num_blocks // len(self.groups) * min(group.block_tokens for group in self.groups) * self.dcp

    @property
    def request_bytes(self) -> int:
        """Bytes of the blocks of one request of the longest context."""
        return self.blocks_per_request * self.bytes_per_block

    def max_sequences(self, context: int) -> int:
        """Most sequences of `context` tokens at once."""
        return self.usable_blocks // self.blocks_of(context)

    def max_context(self, concurrency: int = 1) -> int:
        """Longest context, up to `max_model_len`, of so many sequences at once; 0 when none fits."""
        if concurrency < 1:
            raise UsageError(
                f"vllm: concurrency: found {concurrency}; expected at least 1; name the sequences served at once"
            )
        return self._longest(self.usable_blocks // concurrency)

    def _longest(self, blocks: int) -> int:
        return last_true(lambda context: self.blocks_of(context) <= blocks, self.max_model_len)

    @property
    def too_small(self) -> TooSmall | None:
        """What the engine says when one longest request does not fit; None when it does."""
        spare = int(self.rules.reserves_null_block)
        blocks = max(self.num_blocks - spare, 0)
        if self.blocks_per_request <= blocks:
            return None
        memory = self.num_blocks * self.bytes_per_block if self.memory is None else self.memory
        return TooSmall(
            needed_bytes=self.request_bytes,
            available_bytes=max(memory - spare * self.bytes_per_block, 0),
            max_context=self._longest(blocks),
        )


def plan_states(
    model: ModelStates, settings: VllmSettings, *, memory: int | None = None, num_blocks: int | None = None
) -> CachePlan:
    """The cache of `model` from `memory` bytes for it on each rank, or from a block count.

    Raises:
        EngineRefusedError: The engine would not start so, or no source tells.
        UnknownVersionError: The version's rules are not known and none are assumed.
        UsageError: Both of `memory` and `num_blocks` are given, or neither, or a negative one.
    """
    given = memory if memory is not None else num_blocks
    if (memory is None) is (num_blocks is None) or given is None or given < 0:
        raise UsageError(
            f"vllm: memory: found {memory} bytes and {num_blocks} blocks; "
            "expected one of the two, 0 or more; name the other by itself"
        )
    stored = stored_states(model, settings)
    if not stored:
        raise UsageError("vllm: model: found no state of any layer; expected at least one; there is no cache to plan")
    alignment = align(model, settings, stored)
    grouping = group_layers(model, settings, stored, alignment)
    return CachePlan(
        rules=settings.rules,
        is_assumed=settings.is_assumed,
        alignment=alignment,
        groups=grouping.groups,
        padding_layers=grouping.padding_layers,
        bytes_per_block=grouping.bytes_per_block,
        num_blocks=given if memory is None else memory // grouping.bytes_per_block,
        memory=memory,
        max_model_len=settings.max_model_len,
        dcp=settings.dcp,
    )
