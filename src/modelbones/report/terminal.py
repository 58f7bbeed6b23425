"""Blocks on a terminal: colour, and long tables cut with a count of what is left out."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from modelbones.report.blocks import Block, Facts, Table, heading, is_right

MOST_ROWS = 60


def print_blocks(blocks: tuple[Block, ...]) -> None:
    """Print `blocks` to standard output."""
    console = Console(highlight=False)
    for number, block in enumerate(blocks):
        if number:
            console.print()
        if block.title:
            console.print(Text(block.title, style="bold"))
        console.print(_renderable(block))
        hidden = _hidden(block)
        if hidden:
            console.print(Text(f"  and {hidden:,} more", style="dim"))


def _renderable(block: Block) -> RichTable | Text:
    if isinstance(block, Facts):
        grid = RichTable.grid(padding=(0, 2))
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column()
        for label, value in block.rows:
            grid.add_row(Text(f"  {label}"), Text(value))
        return grid
    if isinstance(block, Table):
        table = RichTable(box=None, pad_edge=True, header_style="bold", padding=(0, 1))
        for column in block.columns:
            table.add_column(heading(column), justify="right" if is_right(column) else "left", overflow="fold")
        for row in block.rows[:MOST_ROWS]:
            table.add_row(*(Text(cell) for cell in row))
        return table
    return Text("\n".join(block.lines[:MOST_ROWS]))


def _hidden(block: Block) -> int:
    rows = block.rows if isinstance(block, Table) else () if isinstance(block, Facts) else block.lines
    return max(0, len(rows) - MOST_ROWS)
