"""`modelbones engines`."""

from __future__ import annotations

import argparse

from modelbones.cli.arguments import add_output
from modelbones.report.engines import engines_blocks, engines_json
from modelbones.report.write import write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print every engine whose rules are known."""
    write(args.style, data=engines_json, blocks=engines_blocks)
    return 0
