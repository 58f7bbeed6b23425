"""How much state a rank's memory holds, by each engine's own rules, behind one protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from modelbones.plan.request import PlanRequest
from modelbones.skeleton import Skeleton


class Capacity(Protocol):
    """What one stage's memory holds of sequences of the request's context."""

    def max_sequences(self, context: int) -> int:
        """Most sequences at once, were `context` the longest; 0 when not even one fits."""

    def parts(self, sequences: int) -> Mapping[str, int]:
        """Bytes of state by part, for so many sequences."""

    def words(self) -> Mapping[str, Any]:
        """The capacity in the engine's own figures."""


def capacity_of(request: PlanRequest, stage: Skeleton, memory: int | None) -> Capacity:
    """The capacity of one pipeline stage, from `memory` bytes for state or the request's blocks.

    Raises:
        EngineRefusedError: The engine would not start so.
        UsageError: A flag the engine has no use for.
    """
    if request.engine == "vllm":
        from modelbones.plan.vllm import vllm_capacity

        return vllm_capacity(request, stage, memory)
    from modelbones.plan.one_by_one import plain_capacity

    return plain_capacity(request, stage, memory)
