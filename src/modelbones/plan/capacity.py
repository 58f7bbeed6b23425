"""How much state a rank's memory holds, by each engine's own rules, behind one protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from modelbones.dtypes import BY_CONFIG_NAME, DType
from modelbones.engines.metrale import MetraleServer
from modelbones.engines.transformers import CacheClass, sequence_bytes
from modelbones.engines.vllm import (
    CachePlan,
    KvDtype,
    SpecMethod,
    VllmSettings,
    drafter_states,
    plan_states,
    states_of,
)
from modelbones.engines.vllm.states import ModelStates
from modelbones.errors import UsageError
from modelbones.plan.request import PlanRequest
from modelbones.skeleton import Skeleton

_CAPABILITY = 9
"""The card whose backends are assumed when none is named: Hopper."""


class Capacity(Protocol):
    """What one stage's memory holds."""

    def max_sequences(self, context: int) -> int:
        """Most sequences of `context` tokens at once; 0 when not even one fits."""

    def parts(self, context: int, sequences: int) -> Mapping[str, int]:
        """Bytes of state by part, for so many sequences."""

    def words(self, context: int) -> Mapping[str, Any]:
        """The capacity in the engine's own figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmCapacity:
    """vLLM: a pool of blocks."""

    states: ModelStates
    settings: VllmSettings
    memory: int | None
    num_blocks: int | None

    def cache(self, context: int) -> CachePlan:
        """The cache of a start whose longest sequence has `context` tokens."""
        settings = replace(self.settings, max_model_len=context)
        return plan_states(self.states, settings, memory=self.memory, num_blocks=self.num_blocks)

    def max_sequences(self, context: int) -> int:
        """Most sequences at once; 0 when the engine would not start with this length."""
        cache = self.cache(context)
        return 0 if cache.too_small is not None else cache.max_sequences(context)

    def parts(self, context: int, sequences: int) -> Mapping[str, int]:
        """The whole pool, whatever runs: the engine takes it when it starts."""
        cache = self.cache(context)
        return {"state.blocks": cache.num_blocks * cache.bytes_per_block}

    def words(self, context: int) -> Mapping[str, Any]:
        """Blocks, groups, padding and both logged figures."""
        cache = self.cache(context)
        too_small = cache.too_small
        return {
            "block_tokens": cache.block_tokens,
            "bytes_per_block": cache.bytes_per_block,
            "num_blocks": cache.num_blocks,
            "blocks_per_request": cache.blocks_per_request,
            "fixed_blocks_per_request": cache.fixed_blocks,
            "groups": [
                {
                    "kind": group.kind.value,
                    "layers": group.num_layers,
                    "block_tokens": group.block_tokens,
                    "bytes": group.nbytes,
                    "blocks_per_request": group.blocks(context),
                }
                for group in cache.groups
            ],
            "padding_percent": cache.padding_percent,
            "logged_tokens": cache.logged_tokens,
            "logged_concurrency": round(cache.logged_concurrency, 2),
            "rules": cache.rules.version,
            "assumed": cache.is_assumed,
            "too_small": None
            if too_small is None
            else {
                "needed_bytes": too_small.needed_bytes,
                "available_bytes": too_small.available_bytes,
                "max_context": too_small.max_context,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MetraleCapacity:
    """metrale: slots, a reserve and pages, each sequence its own."""

    server: MetraleServer
    memory: int

    def max_sequences(self, context: int) -> int:
        """Most sequences at once, beside the spare slot."""
        spare = self.memory - self.server.slot_bytes
        each = self.server.sequence_bytes(context)
        return max(0, spare // each) if each else 0

    def parts(self, context: int, sequences: int) -> Mapping[str, int]:
        """Slots, reserve and pages of so many sequences."""
        return self.server.parts(context=context, sequences=sequences)

    def words(self, context: int) -> Mapping[str, Any]:
        """Bytes a sequence, by what holds them."""
        return {
            "slot_bytes": self.server.slot_bytes,
            "reserve_bytes": self.server.owned_bytes(context),
            "page_bytes": self.server.page_bytes(context),
            "bytes_per_sequence": self.server.sequence_bytes(context),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersCapacity:
    """transformers: one cache a batch, no pages; each sequence as long as the longest."""

    skeleton: Skeleton
    dtype: DType
    cache: CacheClass
    memory: int

    def _each(self, context: int) -> int:
        static = context if self.cache is CacheClass.STATIC else None
        return sequence_bytes(self.skeleton, tokens=context, dtype=self.dtype, cache=self.cache, max_cache_len=static)

    def max_sequences(self, context: int) -> int:
        """Most sequences of a batch."""
        each = self._each(context)
        return self.memory // each if each else 0

    def parts(self, context: int, sequences: int) -> Mapping[str, int]:
        """The cache of a batch of so many sequences."""
        return {"state.cache": self._each(context) * sequences}

    def words(self, context: int) -> Mapping[str, Any]:
        """Bytes a sequence, and the cache class."""
        return {"bytes_per_sequence": self._each(context), "cache": self.cache.value}


def capacity_of(request: PlanRequest, stage: Skeleton, memory: int | None) -> Capacity:
    """The capacity of one pipeline stage, from `memory` bytes for state or the request's blocks.

    Raises:
        EngineRefusedError: The engine would not start so.
        UsageError: A flag the engine has no use for.
    """
    if request.engine == "vllm":
        return _vllm(request, stage, memory)
    _ensure_plain(request)
    if memory is None:
        raise UsageError(f"--num-blocks: {request.engine} has no blocks; expected --kv-memory or --overhead")
    if request.engine == "metrale":
        server = MetraleServer(skeleton=stage, ranks=request.tp, num_spec=request.num_spec, spec_on=request.spec_on)
        return MetraleCapacity(server=server, memory=memory)
    if request.tp > 1 or request.num_spec:
        raise UsageError(
            "transformers: found --tp or --spec; expected neither: its caches are not shared out and nothing drafts; "
            "leave them out"
        )
    words = {"auto": stage.dtype, **BY_CONFIG_NAME, "bf16": DType.BF16}
    if request.kv_dtype not in words:
        raise UsageError(f"--kv-dtype: found {request.kv_dtype}; expected one of {', '.join(words)} for transformers")
    kind = CacheClass.STATIC if request.version == "static" else CacheClass.DYNAMIC
    return TransformersCapacity(skeleton=stage, dtype=words[request.kv_dtype], cache=kind, memory=memory)


def _ensure_plain(request: PlanRequest) -> None:
    """Refuse what only vLLM's allocator knows, rather than ignore it."""
    given = {
        "--dcp": request.dcp > 1,
        "--block-size": request.block_size is not None,
        "--state-dtype": request.state_dtype is not None,
        "--spec draft": request.draft is not None,
        "--assume": request.assume is not None,
        "--kv-dtype": request.engine == "metrale" and request.kv_dtype != "auto",
    }
    for flag, is_given in given.items():
        if is_given:
            raise UsageError(f"{flag}: {request.engine} has no such choice; expected it for vllm only; leave it out")


def _vllm(request: PlanRequest, stage: Skeleton, memory: int | None) -> VllmCapacity:
    try:
        kv_dtype = KvDtype(request.kv_dtype)
    except ValueError:
        known = ", ".join(each.value for each in KvDtype)
        raise UsageError(f"--kv-dtype: found {request.kv_dtype}; expected one of {known}; choose one") from None
    method = SpecMethod.DRAFT if request.draft is not None else SpecMethod.MTP if request.spec_on else SpecMethod.NONE
    settings = VllmSettings(
        version=request.version or "",
        assume=request.assume,
        max_model_len=request.context,
        tp=request.tp,
        dcp=request.dcp,
        block_size=request.block_size,
        kv_dtype=kv_dtype,
        state_dtype=request.state_dtype,
        spec_method=method,
        num_spec=request.num_spec,
        drafter=() if request.draft is None else drafter_states(request.draft),
        prefix_caching=request.prefix_caching,
        max_batched_tokens=request.max_batched_tokens,
        capability=_CAPABILITY if request.gpu is None or request.gpu.capability is None else request.gpu.capability,
    )
    blocks = request.memory.num_blocks
    return VllmCapacity(
        states=states_of(stage), settings=settings, memory=memory if blocks is None else None, num_blocks=blocks
    )
