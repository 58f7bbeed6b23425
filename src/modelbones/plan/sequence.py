"""What one sequence costs in an engine's own layout, whatever memory there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.plan.capacity import capacity_of
from modelbones.plan.request import Memory, PlanRequest
from modelbones.skeleton import Skeleton

_OF_A_POOL = frozenset({"num_blocks", "logged_tokens", "logged_concurrency", "too_small"})


def sequence_words(
    skeleton: Skeleton, engine: str, version: str | None, *, context: int, num_spec: int, spec_on: bool
) -> Mapping[str, Any]:
    """The engine's figures for one sequence of `context` tokens on one rank, "bytes_per_sequence" among them.

    Raises:
        EngineRefusedError: The engine would not start so.
        UsageError: The engine has no such version, or cannot draft.
    """
    is_pooled = engine == "vllm"
    request = PlanRequest(
        skeleton=skeleton,
        engine=engine,
        version=version,
        memory=Memory(num_blocks=1) if is_pooled else Memory(kv_memory=0),
        context=context,
        most_context=context,
        num_spec=num_spec,
        spec_on=spec_on,
    )
    capacity = capacity_of(request, skeleton, None if is_pooled else 0)
    words = {name: value for name, value in capacity.words().items() if name not in _OF_A_POOL}
    if is_pooled:
        words["bytes_per_sequence"] = words["blocks_per_request"] * words["bytes_per_block"]
    return words
