"""The `families` report: what can be read, of what parts, and how it was verified."""

from __future__ import annotations

from typing import Any

from modelbones.families.family import Family
from modelbones.families.registry import build, presets_of, read_config
from modelbones.report.blocks import Block, Facts
from modelbones.skeleton import Skeleton


def families_json(families: tuple[Family, ...]) -> dict[str, Any]:
    """Every family as JSON."""
    return {"schema": "modelbones/families/1", "families": [_family_json(family) for family in families]}


def _example(family: Family) -> Skeleton | None:
    presets = presets_of(family)
    return build(read_config(presets[0])) if presets else None


def _parts(skeleton: Skeleton | None) -> list[str]:
    layers = () if skeleton is None else skeleton.all_layers()
    return sorted({part.name for layer in layers for part in layer.parts})


def _states(skeleton: Skeleton | None) -> list[str]:
    layers = () if skeleton is None else skeleton.all_layers()
    return sorted({state.value for layer in layers for state in layer.states})


def _family_json(family: Family) -> dict[str, Any]:
    example = _example(family)
    return {
        "model_type": family.name,
        "model_types": list(family.model_types),
        "title": family.title,
        "presets": list(presets_of(family)),
        "parts": _parts(example),
        "states": _states(example),
        "verified": list(family.verified),
    }


def families_blocks(families: tuple[Family, ...]) -> tuple[Block, ...]:
    """Every family for people, each with its own few lines, so that a preset's name stays whole."""
    return tuple(_family_block(family) for family in families)


def _family_block(family: Family) -> Block:
    example = _example(family)
    rows = (
        ("model_type", ", ".join(family.model_types)),
        ("preset", ", ".join(presets_of(family)) or "none"),
        ("parts", ", ".join(_parts(example)) or "none"),
        ("state", ", ".join(_states(example)) or "none"),
        ("verified", "; ".join(family.verified)),
    )
    return Facts(title=family.title, rows=rows)
