"""Choose how a result leaves: JSON, Markdown, a terminal's tables or plain text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from modelbones.errors import SourceError
from modelbones.report.blocks import Block, visible_blocks


def write(
    style: str,
    *,
    data: Callable[[], Mapping[str, Any]],
    blocks: Callable[[], tuple[Block, ...]],
    annotations: Callable[[], str] | None = None,
) -> None:
    """Write one result to standard output.

    `style` is "json", "md", "github" or "text"; only the form that is asked for is made.
    Text is a table on a terminal and plain text anywhere else. A result that has no
    findings to annotate is Markdown for "github".
    """
    try:
        _write(style, data, lambda: visible_blocks(blocks()), annotations)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        place, found = "standard output", "no space left to write to"
        raise SourceError(place=place, found=found, fix="free some, or write elsewhere") from None


def _write(
    style: str,
    data: Callable[[], Mapping[str, Any]],
    blocks: Callable[[], tuple[Block, ...]],
    annotations: Callable[[], str] | None,
) -> None:
    if style == "json":
        sys.stdout.write(json.dumps(data(), indent=2) + "\n")
    elif style == "github" and annotations is not None:
        sys.stdout.write(annotations())
    elif style in ("md", "github"):
        from modelbones.report.markdown import markdown

        sys.stdout.write(markdown(blocks()))
    elif sys.stdout.isatty():
        from modelbones.report.terminal import print_blocks

        print_blocks(blocks())
    else:
        from modelbones.report.plain import plain

        sys.stdout.write(plain(blocks()))
