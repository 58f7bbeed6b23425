"""One change to a config, anywhere in it: what hand-edited and half-converted files look like."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from modelbones.errors import ModelbonesError
from modelbones.families.registry import build, read_config

GONE = object()
JUNK = st.sampled_from(
    [GONE, None, True, False, 0, -1, 1, 2, 3, 7, 2**63, 10**30, 1.5, float("nan"), "", "full", "x", [], [1], [None], {}]
)


def paths(value: Any, stem: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every key and item in `value`."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*stem, key)
        yield from paths(inner, (*stem, key))


def changed(config: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """`config` with the value at `path` replaced, or taken out where it is `GONE`."""
    config = deepcopy(config)
    holder: Any = config
    for key in path[:-1]:
        holder = holder[key]
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return config


def mutants(config: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """`config` with one value anywhere replaced by junk, or taken out."""
    return st.builds(changed, st.just(config), st.sampled_from(list(paths(config))), JUNK)


def reads_or_refuses(config: dict[str, Any]) -> None:
    """Build it and ask for its state, or raise one of our own errors; anything else fails the test."""
    try:
        skeleton = build(read_config(config))
    except ModelbonesError:
        return
    skeleton.budget().for_sequence(1_000)
