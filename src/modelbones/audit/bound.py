"""`Bound`: what one pattern found among the stored tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from modelbones.checkpoint.stored import Stored
from modelbones.findings import Code
from modelbones.quant.claim import PLAIN
from modelbones.tensors import TensorPattern

__all__ = ["PLAIN", "Bound", "Clash", "Want", "Wrong"]


RISKY = "risky"
"""Plain, in a type that loads but harms."""


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


class Clash(Enum):
    """How a stored weight contradicts a claim."""

    UNPACKED = "unpacked"
    """Claimed to be quantised, stored plain."""
    UNCLAIMED = "unclaimed"
    """Stored quantised, claimed to be plain."""
    OTHER_SCHEME = "other_scheme"
    """Quantised in another scheme than claimed."""


@dataclass(slots=True)
class Bound:
    """What one pattern found.

    Attributes:
        pattern: The pattern.
        bound: Stored weights that are there and right.
        lost_names: Names in a file no one could read.
        tensors: Stored tensors they take, sidecars included.
        nbytes: Bytes of those.
        absent: Names of weights that are not stored, in no form.
        missing: Those of them that nothing speaks of: no scale, no look-alike.
        wrong: What is stored and wrong.
        wants: What may be stored under another name: every missing name and sidecar.
        risky: Names stored in a type that loads but harms.
        schemes: Scheme -> weights stored so.
        scheme_bytes: Scheme -> bytes, sidecars included.
        clashes: (number of the claim, how) -> weights that contradict it.
    """

    pattern: TensorPattern
    bound: int = 0
    tensors: int = 0
    nbytes: int = 0
    absent: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    lost_names: list[str] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    wants: list[Want] = field(default_factory=list)
    risky: list[str] = field(default_factory=list)
    schemes: Counter[str] = field(default_factory=Counter)
    scheme_bytes: Counter[str] = field(default_factory=Counter)
    clashes: dict[tuple[int, Clash], list[str]] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Weights in a file no one could read."""
        return len(self.lost_names)

    def count(self, scheme: str, nbytes: int) -> None:
        """Count one weight that is right."""
        self.bound += 1
        self.schemes[scheme] += 1
        self.scheme_bytes[scheme] += nbytes

    def clash(self, number: int, how: Clash, name: str) -> None:
        """Note one weight that contradicts a claim."""
        self.clashes.setdefault((number, how), []).append(name)
