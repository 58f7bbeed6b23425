"""Public vLLM logs: what was started, what was printed, and where.

A row's class says what its figures rest on. MEMORY: the printed memory alone; a figure in GiB
is an interval of 0.005 either way, in which the block count must lie. BLOCKS: a block count
the source quotes. STRUCTURE: block, padding, groups, blocks a request; or a block count that
only the logged tokens give. GAPS are rows that cannot be reached, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

from modelbones.engines.vllm import LayerState, SpecMethod, VllmSettings
from tests.engines.vllm.models import states, window

M = 1_048_576


class Basis(Enum):
    MEMORY = "memory"
    BLOCKS = "blocks"
    STRUCTURE = "structure"


@dataclass(frozen=True, kw_only=True)
class Log:
    """One row: the start, its basis, what was printed or counted, and its source."""

    id: str
    model: str
    start: dict[str, Any]
    basis: Basis
    source: str
    gib: str | None = None
    memory: int | None = None
    blocks: int | None = None
    printed: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> VllmSettings:
        return VllmSettings(**{"max_model_len": 4096, **self.start})

    @property
    def memory_interval(self) -> tuple[int, int] | None:
        """Bytes the printed memory may stand for."""
        if self.memory is not None:
            return self.memory, self.memory
        if self.gib is None:
            return None
        half, gib = Decimal("0.005"), Decimal(2**30)
        return int((Decimal(self.gib) - half) * gib), int((Decimal(self.gib) + half) * gib)


def dflash2(layers: int = 5) -> tuple[LayerState, ...]:
    """The DFlash2 drafter: 8 KV heads of 128 over a window of 2,048 tokens."""
    return states([window(8, 128, 2048)] * layers, is_draft=True)


def mtp(tokens: int) -> dict[str, Any]:
    return {"spec_method": SpecMethod.MTP, "num_spec": tokens}


def drafting(tokens: int, layers: int = 5) -> dict[str, Any]:
    return {"spec_method": SpecMethod.DRAFT, "num_spec": tokens, "drafter": dflash2(layers)}


V28 = {"version": "0.28.0"}
"""The release most of the logs name."""
OLD = {"assume": "0.19.1", "prefix_caching": False}
"""A start of a release before those whose rules are known; hybrids had no prefix caching."""
