"""`modelbones families`."""

from __future__ import annotations

import argparse

from modelbones.cli.arguments import add_output
from modelbones.families.registry import families
from modelbones.report.families import families_blocks, families_json
from modelbones.report.write import write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print every family."""
    known = families()
    write(args.style, data=lambda: families_json(known), blocks=lambda: families_blocks(known))
    return 0
