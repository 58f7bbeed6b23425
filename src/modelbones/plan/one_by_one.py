"""Capacity of the engines that give each sequence memory of its own: metrale and transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelbones.dtypes import BY_CONFIG_NAME, DType
from modelbones.engines.metrale import MetraleServer
from modelbones.engines.transformers import CacheClass, sequence_bytes
from modelbones.errors import UsageError
from modelbones.plan.request import MAX_BATCHED_TOKENS, PlanRequest
from modelbones.skeleton import Skeleton


@dataclass(frozen=True, slots=True, kw_only=True)
class MetraleCapacity:
    """metrale: slots, a reserve and pages, each sequence its own."""

    server: MetraleServer
    memory: int
    context: int

    def max_sequences(self, context: int) -> int:
        """Most sequences at once, beside the spare slot."""
        spare = self.memory - self.server.slot_bytes
        each = self.server.sequence_bytes(context)
        return max(0, spare // each) if each else 0

    def parts(self, sequences: int) -> Mapping[str, int]:
        """Slots, reserve and pages of so many sequences."""
        return self.server.parts(context=self.context, sequences=sequences)

    def words(self) -> Mapping[str, Any]:
        """Bytes a sequence, by what holds them."""
        return {
            "slot_bytes": self.server.slot_bytes,
            "reserve_bytes": self.server.owned_bytes(self.context),
            "page_bytes": self.server.page_bytes(self.context),
            "bytes_per_sequence": self.server.sequence_bytes(self.context),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersCapacity:
    """transformers: one cache a batch, no pages; each sequence as long as the longest."""

    skeleton: Skeleton
    dtype: DType
    cache: CacheClass
    memory: int
    context: int

    def _each(self, context: int) -> int:
        static = max(context, 1) if self.cache is CacheClass.STATIC else None
        return sequence_bytes(self.skeleton, tokens=context, dtype=self.dtype, cache=self.cache, max_cache_len=static)

    def max_sequences(self, context: int) -> int:
        """Most sequences of a batch."""
        each = self._each(context)
        return self.memory // each if each else 0

    def parts(self, sequences: int) -> Mapping[str, int]:
        """The cache of a batch of so many sequences."""
        return {"state.cache": self._each(self.context) * sequences}

    def words(self) -> Mapping[str, Any]:
        """Bytes a sequence, and the cache class."""
        return {"bytes_per_sequence": self._each(self.context), "cache": self.cache.value}


def plain_capacity(request: PlanRequest, stage: Skeleton, memory: int | None) -> MetraleCapacity | TransformersCapacity:
    """What `memory` bytes hold of `stage`.

    Raises:
        UsageError: A flag the engine has no use for.
    """
    _ensure_plain(request)
    if memory is None:
        raise UsageError(f"--num-blocks: {request.engine} has no blocks; expected --kv-memory or --overhead")
    if request.engine == "metrale":
        server = MetraleServer(skeleton=stage, ranks=request.tp, num_spec=request.num_spec, spec_on=request.spec_on)
        return MetraleCapacity(server=server, memory=memory, context=request.context)
    if request.tp > 1 or request.num_spec:
        raise UsageError(
            "transformers: found --tp or --spec; expected neither: its caches are not shared out and nothing drafts; "
            "leave them out"
        )
    words = {"auto": stage.dtype, **BY_CONFIG_NAME, "bf16": DType.BF16}
    if request.kv_dtype not in words:
        raise UsageError(f"--kv-dtype: found {request.kv_dtype}; expected one of {', '.join(words)} for transformers")
    kind = CacheClass.STATIC if request.version == "static" else CacheClass.DYNAMIC
    return TransformersCapacity(
        skeleton=stage, dtype=words[request.kv_dtype], cache=kind, memory=memory, context=request.context
    )


def _ensure_plain(request: PlanRequest) -> None:
    """Refuse what only vLLM's allocator knows, rather than ignore it."""
    given = {
        "--dcp": request.dcp > 1,
        "--block-size": request.block_size is not None,
        "--state-dtype": request.state_dtype is not None,
        "--spec draft": request.draft is not None,
        "--assume": request.assume is not None,
        "--prefix-caching off": not request.prefix_caching,
        "--max-batched-tokens": request.max_batched_tokens != MAX_BATCHED_TOKENS,
        "--kv-dtype": request.engine == "metrale" and request.kv_dtype != "auto",
    }
    for flag, is_given in given.items():
        if is_given:
            raise UsageError(f"{flag}: {request.engine} has no such choice; expected it for vllm only; leave it out")
