"""The one check on every row count, position and size a caller passes."""

from __future__ import annotations

from modelbones.config import shown
from modelbones.errors import UsageError


def ensure_count(name: str, value: object, *, least: int = 0) -> int:
    """`value` when it is an int of at least `least`; a bool is none.

    Raises:
        UsageError: It is anything else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}: found {shown(value)}; expected an integer, {least} or more; pass a Python int")
    return value
