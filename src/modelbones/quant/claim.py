"""`Claim`: what a config says about its quantisation, to be held against what is stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_ONE_EXPERT = re.compile(r"experts\.\d")
NOTHING: frozenset[str] = frozenset()
PLAIN = "none"
"""The name of no scheme at all; among the schemes of a module it says that it may be left unquantised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One producer's words about which modules are stored in which scheme.

    Attributes:
        schemes: Every scheme it names.
        place: Where it stands, for messages.
        schemes_of: A module (its weight's name without ".weight") -> the schemes it may be
            stored in; empty when it is left unquantised.
        tells_experts_apart: Whether it names single experts, so that each must be asked about.
        of_others: The schemes that weights of no linear layer may be stored in: embeddings.
    """

    schemes: frozenset[str]
    place: str
    schemes_of: Callable[[str], frozenset[str]]
    tells_experts_apart: bool = False
    of_others: frozenset[str] = NOTHING

    @property
    def scheme(self) -> str:
        """Its schemes, joined for a message."""
        return " or ".join(sorted(self.schemes))

    def wanted(self, weight: str) -> frozenset[str]:
        """The schemes claimed for the linear weight of this full name; empty for none."""
        return self.schemes_of(weight.removesuffix(".weight"))


def nothing_claimed(place: str) -> Claim:
    """The claim of a config without a word about quantisation: all is stored plain."""
    return Claim(schemes=NOTHING, place=place, schemes_of=lambda _: NOTHING)


def names_experts(entries: Iterable[str]) -> bool:
    """Whether some entry of a config names a single expert."""
    return any(_ONE_EXPERT.search(entry) for entry in entries)


def everything_but(
    is_excluded: Callable[[str], bool], *, schemes: frozenset[str], place: str, entries: Iterable[str]
) -> Claim:
    """The claim that every linear module is stored in one of `schemes`, the excluded ones apart."""
    return Claim(
        schemes=schemes,
        place=place,
        schemes_of=lambda module: NOTHING if is_excluded(module) else schemes,
        tells_experts_apart=names_experts(entries),
    )


def what_is_stored(schemes: frozenset[str], *, place: str, named: Mapping[str, frozenset[str]] | None = None) -> Claim:
    """The claim that what is packed is in one of `schemes`, wherever it is; `named` modules apart."""
    either = schemes | {PLAIN}
    modules = named or {}
    return Claim(
        schemes=schemes,
        place=place,
        schemes_of=lambda module: modules.get(module, either),
        tells_experts_apart=names_experts(modules),
        of_others=either,
    )
