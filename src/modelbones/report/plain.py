"""Blocks as plain text, readable at 80 columns: what goes into a pipe or a file."""

from __future__ import annotations

from itertools import zip_longest
from textwrap import wrap

from modelbones.report.blocks import Block, Facts, Table, heading, is_right

WIDTH = 80
_LEAST = 8
"""No column of text is made narrower than this."""


def plain(blocks: tuple[Block, ...]) -> str:
    """All of `blocks`, nothing cut, a blank line between two."""
    return "\n\n".join("\n".join(_lines(block)) for block in blocks) + "\n"


def _lines(block: Block) -> list[str]:
    title = [block.title] if block.title else []
    if isinstance(block, Facts):
        return title + _facts(block)
    if isinstance(block, Table):
        return title + _table(block)
    return title + [part for line in block.lines for part in wrap(line, WIDTH, subsequent_indent="  ") or [""]]


def _facts(facts: Facts) -> list[str]:
    width = max((len(label) for label, _ in facts.rows), default=0)
    lines = []
    for label, value in facts.rows:
        room = max(WIDTH - width - 4, 20)
        first, *rest = wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"  {label:<{width}}  {first}")
        lines.extend(f"  {'':<{width}}  {more}" for more in rest)
    return lines


def _table(table: Table) -> list[str]:
    names = tuple(heading(column) for column in table.columns)
    rights = [is_right(column) for column in table.columns]
    widths = [max(len(cell) for cell in cells) for cells in zip(names, *table.rows, strict=True)]
    _narrow(widths, rights)
    heads = _folded(names, widths)
    rows = [row for cells in table.rows for row in _folded(cells, widths)]

    def line(cells: tuple[str, ...]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, rights, strict=True)
        )
        return ("  " + "  ".join(padded)).rstrip()

    rule = tuple("-" * width for width in widths)
    return [line(row) for row in (*heads, rule, *rows)]


def _narrow(widths: list[int], rights: list[bool]) -> None:
    """Take what is over the page's width from the columns of text, always from the widest."""
    over = sum(widths) + 2 * len(widths) - WIDTH
    texts = [index for index, right in enumerate(rights) if not right]
    while over > 0 and texts:
        widest = max(texts, key=lambda index: widths[index])
        if widths[widest] <= _LEAST:
            return
        widths[widest] -= 1
        over -= 1


def _folded(cells: tuple[str, ...], widths: list[int]) -> list[tuple[str, ...]]:
    """One row as the lines it takes once each cell keeps to its column."""
    parts = [
        wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    return list(zip_longest(*parts, fillvalue=""))
