"""`Family`: how one architecture is read and built, for the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelbones.config import Section
from modelbones.skeleton import Skeleton


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One architecture.

    Attributes:
        name: Its main `model_type`.
        model_types: Every top-level `model_type` it answers to.
        title: The model people know it by.
        read: Top section -> typed config; faults go to the section's ledger.
        build: Typed config -> skeleton.
        verified: What its contract was compared with, one line each.
        tiny: (raw config, layers to keep) -> a small raw config of the same shape, for
            `synth --shrink`; None when there is none yet.
    """

    name: str
    model_types: tuple[str, ...]
    title: str
    read: Callable[[Section], Any]
    build: Callable[[Any], Skeleton]
    verified: tuple[str, ...]
    tiny: Callable[[Mapping[str, Any], int], dict[str, Any]] | None = None
