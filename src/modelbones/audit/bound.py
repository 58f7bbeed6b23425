"""`Bound`: what one pattern found among the stored tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from modelbones.checkpoint.stored import Stored
from modelbones.findings import Code
from modelbones.tensors import TensorPattern

PLAIN = "none"
"""The name of no scheme at all."""


class Wrong(NamedTuple):
    """One tensor that is there and wrong, or that another one cannot do without."""

    code: Code
    name: str
    found: str
    expected: str


class Want(NamedTuple):
    """A name that is not stored, and whether a tensor stored so could be it."""

    name: str
    accepts: Callable[[Stored], bool]


@dataclass(slots=True)
class Bound:
    """What one pattern found.

    Attributes:
        pattern: The pattern.
        bound: Logical tensors that are there and right.
        lost: Logical tensors that are in a file no one could read.
        tensors: Stored tensors they take, sidecars included.
        nbytes: Bytes of those.
        missing: Names that are not stored.
        wrong: What is stored and wrong.
        wants: What may be stored under another name: every missing name and sidecar.
        risky: Names stored in a type that loads but harms.
        schemes: Scheme -> (logical tensors, bytes with sidecars).
        unclaimed: Weights that are quantised and not claimed to be.
        unpacked: Weights that are claimed to be quantised and are not.
    """

    pattern: TensorPattern
    bound: int = 0
    lost: int = 0
    tensors: int = 0
    nbytes: int = 0
    missing: list[str] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    wants: list[Want] = field(default_factory=list)
    risky: list[str] = field(default_factory=list)
    schemes: Counter[str] = field(default_factory=Counter)
    scheme_bytes: Counter[str] = field(default_factory=Counter)
    unclaimed: list[str] = field(default_factory=list)
    unpacked: list[str] = field(default_factory=list)
