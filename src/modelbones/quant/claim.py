"""`Claim`: what a config says about its quantisation, to be held against what is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One producer's words about which modules are stored in which scheme.

    Attributes:
        scheme: The scheme it names, as reports name it.
        place: Where it stands, for messages.
        is_excluded: Whether a module (its weight's name without ".weight") is left unquantised.
    """

    scheme: str
    place: str
    is_excluded: Callable[[str], bool]

    def covers(self, weight: str) -> bool:
        """Whether the linear weight of this full name is claimed to be quantised."""
        return not self.is_excluded(weight.removesuffix(".weight"))
