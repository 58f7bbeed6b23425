"""vLLM's capacity: a pool of blocks, laid out once and counted at any context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from modelbones.engines.vllm import (
    CachePlan,
    KvDtype,
    SpecMethod,
    VllmSettings,
    drafter_states,
    plan_states,
    states_of,
)
from modelbones.errors import UsageError
from modelbones.plan.request import PlanRequest
from modelbones.skeleton import Skeleton

_CAPABILITY = 9
"""The card whose backends are assumed when none is named: Hopper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmCapacity:
    """A start whose longest sequence has the request's context."""

    cache: CachePlan

    def max_sequences(self, context: int) -> int:
        """Most sequences at once; 0 also where the engine would not start with this length.

        The longest sequence of a start changes no block, no page and no group's layers, so
        the blocks of another context are counted on the same layout.
        """
        return replace(self.cache, max_model_len=context).max_sequences(context)

    def parts(self, sequences: int) -> Mapping[str, int]:
        """The whole pool, whatever runs: the engine takes it when it starts."""
        return {"state.blocks": self.cache.num_blocks * self.cache.bytes_per_block}

    def words(self) -> Mapping[str, Any]:
        """Blocks, groups, padding and both logged figures."""
        cache = self.cache
        return {
            "block_tokens": cache.block_tokens,
            "bytes_per_block": cache.bytes_per_block,
            "num_blocks": cache.num_blocks,
            "blocks_per_request": cache.blocks_per_request,
            "fixed_blocks_per_request": cache.fixed_blocks,
            "groups": _groups(cache),
            "padding_percent": cache.padding_percent,
            "padding_layers": [
                {"kind": pad.kind.value, "layers": pad.layers, "percent": pad.percent} for pad in cache.padding_layers
            ],
            "logged_tokens": cache.logged_tokens,
            "logged_concurrency": round(cache.logged_concurrency, 2),
            "rules": cache.rules.version,
            "assumed": cache.is_assumed,
            "too_small": _too_small(cache),
        }


def _groups(cache: CachePlan) -> list[dict[str, Any]]:
    return [
        {
            "kind": group.kind.value,
            "layers": group.num_layers,
            "block_tokens": group.block_tokens,
            "bytes": group.nbytes,
            "blocks_per_request": group.blocks(cache.max_model_len),
        }
        for group in cache.groups
    ]


def _too_small(cache: CachePlan) -> dict[str, int] | None:
    too_small = cache.too_small
    if too_small is None:
        return None
    return {
        "needed_bytes": too_small.needed_bytes,
        "available_bytes": too_small.available_bytes,
        "max_context": too_small.max_context,
    }


def vllm_capacity(request: PlanRequest, stage: Skeleton, memory: int | None) -> VllmCapacity:
    """What `memory` bytes, or the request's blocks, hold of `stage`.

    Raises:
        EngineRefusedError: The engine would not start so.
        UsageError: A word or a version it does not know.
    """
    blocks = request.memory.num_blocks
    return VllmCapacity(
        cache=plan_states(
            states_of(stage), _settings(request), memory=memory if blocks is None else None, num_blocks=blocks
        )
    )


def _settings(request: PlanRequest) -> VllmSettings:
    try:
        kv_dtype = KvDtype(request.kv_dtype)
    except ValueError:
        known = ", ".join(each.value for each in KvDtype)
        raise UsageError(f"--kv-dtype: found {request.kv_dtype}; expected one of {known}; choose one") from None
    # Tokens that someone else drafts widen conv windows, whether or not that model is named.
    others = SpecMethod.DRAFT if request.num_spec else SpecMethod.NONE
    return VllmSettings(
        version=request.version or "",
        assume=request.assume,
        max_model_len=request.context,
        tp=request.tp,
        dcp=request.dcp,
        block_size=request.block_size,
        kv_dtype=kv_dtype,
        state_dtype=request.state_dtype,
        spec_method=SpecMethod.MTP if request.spec_on else others,
        num_spec=request.num_spec,
        drafter=() if request.draft is None else drafter_states(request.draft),
        prefix_caching=request.prefix_caching,
        max_batched_tokens=request.max_batched_tokens,
        capability=_CAPABILITY if request.gpu is None or request.gpu.capability is None else request.gpu.capability,
    )
