"""Run a command of the CLI in this process, and make small checkpoints with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from modelbones.cli import main


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)

    @property
    def findings(self) -> list[tuple[str, str, str]]:
        """(severity, code, name) of each finding of a `check --json`."""
        return [(each["severity"], each["code"], each["name"]) for each in self.data["findings"]]


class Cli:
    """`run("check", folder, "--json")`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> Ran:
        self.capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # argparse's --help and --version
            code = int(stop.code or 0)
        shown = self.capsys.readouterr()
        return Ran(code, shown.out, shown.err)


def rewrite_config(folder: Path, **edits: object) -> None:
    """Change top-level keys of a checkpoint's config; None takes a key out."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **edits}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def rewrite_text_config(folder: Path, edits: Mapping[str, object]) -> None:
    """The same in its `text_config`."""
    text = json.loads((folder / "config.json").read_text())["text_config"]
    text.update(edits)
    rewrite_config(folder, text_config={key: value for key, value in text.items() if value is not None})
