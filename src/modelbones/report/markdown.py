"""Blocks as Markdown, for an issue or a pull request."""

from __future__ import annotations

from modelbones.report.blocks import Block, Facts, Table, heading, is_right


def markdown(blocks: tuple[Block, ...]) -> str:
    """All of `blocks`, nothing cut."""
    return "\n\n".join("\n".join(_lines(block)) for block in blocks) + "\n"


def _lines(block: Block) -> list[str]:
    title = [f"### {block.title}", ""] if block.title else []
    if isinstance(block, Facts):
        return title + [f"- **{label}**: {value}" for label, value in block.rows]
    if isinstance(block, Table):
        rules = ("---:" if is_right(column) else "---" for column in block.columns)
        rows = (tuple(heading(column) for column in block.columns), tuple(rules), *block.rows)
        return title + [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows]
    return title + [f"- {line}" for line in block.lines]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
