"""Modules whose tensors are listed and counted but not judged: towers with no contract here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from modelbones.checkpoint.stored import Stored
from modelbones.tensors import Group


class OpenTensors(NamedTuple):
    """What one open module stores."""

    group: Group
    tensors: int
    nbytes: int


def take_open(left: dict[str, Stored], prefixes: tuple[tuple[str, Group], ...]) -> tuple[OpenTensors, ...]:
    """Take the tensors of every open module out of what is left."""
    return tuple(_take(left, prefix, group) for prefix, group in prefixes)


def _take(left: dict[str, Stored], prefix: str, group: Group) -> OpenTensors:
    # A wrapper may put its own "model." before a module's prefix, or drop it.
    spelled = tuple(_spellings(prefix))
    taken = [left.pop(name) for name in [name for name in left if name.startswith(spelled)]]
    return OpenTensors(group, len(taken), sum(stored.nbytes for stored in taken))


def _spellings(prefix: str) -> Iterator[str]:
    yield prefix
    yield prefix.removeprefix("model.")
    if not prefix.startswith("model."):
        yield f"model.{prefix}"
