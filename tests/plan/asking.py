"""Short ways to ask: a preset's skeleton once a session, and requests with defaults."""

from __future__ import annotations

from functools import cache
from typing import Any

from modelbones.families.registry import build, read_config
from modelbones.plan import Memory, PlanRequest
from modelbones.skeleton import Skeleton


@cache
def skeleton(preset: str = "glm-5.3-flash") -> Skeleton:
    return build(read_config(preset))


def asked(preset: str = "glm-5.3-flash", **flags: Any) -> PlanRequest:
    """A request; 100 GiB for state unless it says where the memory is from."""
    defaults: dict[str, Any] = {
        "skeleton": skeleton(preset),
        "engine": "vllm",
        "version": None,
        "context": 4096,
        "most_context": 131_072,
        "memory": Memory(kv_memory=100 * 2**30),
    }
    request = {**defaults, **flags}
    if request["engine"] == "vllm" and request["version"] is None:
        request["version"] = "0.33.0"
    return PlanRequest(**request)
