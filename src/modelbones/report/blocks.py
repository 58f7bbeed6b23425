"""What a report is made of, whatever it is printed on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A few labelled values.

    Attributes:
        title: Heading, empty for none.
        rows: (label, value) pairs.
    """

    title: str = ""
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under named columns.

    Attributes:
        title: Heading, empty for none.
        columns: Column names; one that starts with ">" is set flush right.
        rows: Cells, one for each column.
    """

    title: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Plain sentences, one a line."""

    title: str = ""
    lines: tuple[str, ...]


Block = Facts | Table | Lines


def is_right(column: str) -> bool:
    """Whether a column is set flush right."""
    return column.startswith(">")


def heading(column: str) -> str:
    """A column's name as it is printed."""
    return column.removeprefix(">")
