"""What a report is made of, whatever it is printed on."""

from __future__ import annotations

from dataclasses import dataclass, replace


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


def visible(text: str) -> str:
    """`text` on one line: what a header or a path may hold to steer a terminal is spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_blocks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """`blocks` with every text in them made visible."""
    return tuple(_visible(block) for block in blocks)


def _visible(block: Block) -> Block:
    title = visible(block.title)
    if isinstance(block, Facts):
        return Facts(title=title, rows=tuple((visible(label), visible(value)) for label, value in block.rows))
    if isinstance(block, Table):
        return replace(block, title=title, rows=tuple(tuple(map(visible, row)) for row in block.rows))
    return Lines(title=title, lines=tuple(map(visible, block.lines)))


def is_right(column: str) -> bool:
    """Whether a column is set flush right."""
    return column.startswith(">")


def heading(column: str) -> str:
    """A column's name as it is printed."""
    return column.removeprefix(">")
