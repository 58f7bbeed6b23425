"""What a person asks of an audit."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.tensors import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a person asks of an audit.

    Attributes:
        only: Groups to judge; empty for all.
        allow_absent: Groups that may be absent as a whole.
    """

    only: frozenset[Group] = frozenset()
    allow_absent: frozenset[Group] = frozenset()

    def judges(self, group: Group) -> bool:
        """Whether findings about `group` are wanted."""
        return not self.only or group in self.only
