"""Names that stand in a file, as they may stand in a message.

A header may hold any text as a name: control characters would reach a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 120


def quoted(name: str) -> str:
    """The name in double quotes, on one line, without control characters, shortened."""
    shown = name if len(name) <= _LONGEST else f"{name[:80]}...{name[-30:]}"
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in shown)
    return f'"{shown}"'


def listed(names: Sequence[str], *, count: int | None = None, most: int = 3) -> str:
    """The first few names and how many more: `"a", "b", "c" and 1,204 more`."""
    total = len(names) if count is None else count
    shown = ", ".join(map(quoted, names[:most]))
    rest = total - min(len(names), most)
    return f"{shown} and {rest:,} more" if rest else shown


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 tensor`, `1,204 tensors`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
