"""docs/engines.md says what the code and the tests hold."""

from __future__ import annotations

import argparse
from pathlib import Path

from modelbones.cli.explain import add_arguments
from modelbones.engines.vllm import known_versions
from modelbones.engines.vllm.figures import FIGURES
from tests.engines.vllm.logs import GAPS

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()


def test_every_version_has_its_row() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| 0.")]
    assert tuple(rows) == known_versions()


def test_the_counts_are_the_figures() -> None:
    assert f"- {FIGURES.allocator} answers" in PAGE
    assert f"- {FIGURES.from_memory} public logs from the printed memory" in PAGE
    assert f"- {FIGURES.from_blocks} public logs from a block count" in PAGE
    assert f"- {FIGURES.structure} public logs in structure" in PAGE


def test_every_gap_is_listed_with_its_reason() -> None:
    for row, reason in GAPS.items():
        assert f"| {row} | {reason} |" in PAGE


def test_every_flag_is_named() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    shared = {"--json", "--format"}
    flags = {flag for action in parser._actions for flag in action.option_strings} - shared
    assert {flag for flag in flags if f"`{flag}" not in PAGE} == set()
