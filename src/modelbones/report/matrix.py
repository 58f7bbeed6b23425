"""The README's support matrix, from the registry: what is read, of what kinds, and how it was verified."""

from __future__ import annotations

from modelbones.families.family import Family
from modelbones.families.registry import build, families, presets_of, read_config
from modelbones.report.blocks import Table
from modelbones.report.markdown import markdown
from modelbones.skeleton import Mixer, Mlp, Skeleton

OPENING, CLOSING = "<!-- families -->", "<!-- /families -->"
_NOTHING = "-"


def support_matrix() -> str:
    """Every family as one Markdown table in registry order, and below it how each was verified."""
    known = families()
    checks = tuple(dict.fromkeys(check for family in known for check in family.verified))
    columns = ("`model_type`", "models", "presets", "layers", "state of a sequence", "also", "verified")
    table = Table(columns=columns, rows=tuple(_row(family, checks) for family in known))
    lines = (f"{number}. {check}" for number, check in enumerate(checks, start=1))
    return "\n".join((markdown((table,)).strip(), "", "Verified:", "", *lines))


def block() -> str:
    """What stands in README.md from its opening mark to its closing one, both included."""
    return f"{OPENING}\n{support_matrix()}\n{CLOSING}"


def _row(family: Family, checks: tuple[str, ...]) -> tuple[str, ...]:
    presets = presets_of(family)
    example = build(read_config(presets[0])) if presets else None
    return (
        ", ".join(f"`{word}`" for word in family.model_types),
        family.title,
        ", ".join(f"`{preset}`" for preset in presets) or _NOTHING,
        _kinds(example),
        _states(example),
        _modules(example),
        ", ".join(str(number) for number in sorted(checks.index(check) + 1 for check in family.verified)),
    )


def _kinds(skeleton: Skeleton | None) -> str:
    """Mixers and then MLPs, each once, in layer order."""
    layers = () if skeleton is None else skeleton.layers
    mixers = dict.fromkeys(layer.mixer.value for layer in layers if layer.mixer is not Mixer.NONE)
    mlps = dict.fromkeys(layer.mlp.value for layer in layers if layer.mlp is not Mlp.NONE)
    return ", ".join((*mixers, *mlps)).replace("_", " ") or _NOTHING


def _states(skeleton: Skeleton | None) -> str:
    """Budget terms, which is where the bytes of a sequence are."""
    counted = () if skeleton is None else skeleton.budget().counted
    return ", ".join(term.name.replace("_", " ") for term in counted) or _NOTHING


def _modules(skeleton: Skeleton | None) -> str:
    """MTP and towers."""
    if skeleton is None:
        return _NOTHING
    mtp = "" if skeleton.mtp is None else f"MTP ({'apart' if skeleton.mtp.stem else 'inline'})"
    tower = "vision tower" if skeleton.tower else ""
    listed = "vision tower, listed only" if skeleton.open_prefixes else ""
    return ", ".join(filter(None, (mtp, tower, listed))) or _NOTHING
