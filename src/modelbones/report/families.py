"""The `families` report: what can be read, of what parts, and how it was verified."""

from __future__ import annotations

from typing import Any

from modelbones.families.family import Family
from modelbones.families.registry import build, presets_of, read_config
from modelbones.report.blocks import Block, Lines, Table
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
    """Every family for people, and below them how each was verified, by number."""
    checks = tuple(dict.fromkeys(check for family in families for check in family.verified))
    rows = tuple(_row(family, checks) for family in families)
    columns = ("model_type", "preset", "parts", "state", "verified")
    listed = tuple(f"{number}. {check}" for number, check in enumerate(checks, start=1))
    return Table(columns=columns, rows=rows), Lines(title="Verified", lines=listed)


def _row(family: Family, checks: tuple[str, ...]) -> tuple[str, ...]:
    example = _example(family)
    return (
        ", ".join(family.model_types),
        ", ".join(presets_of(family)) or "-",
        ", ".join(_parts(example)) or "-",
        ", ".join(_states(example)) or "-",
        ", ".join(str(number) for number in sorted(checks.index(check) + 1 for check in family.verified)),
    )
