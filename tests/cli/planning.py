"""Ask `plan` for its JSON."""

from __future__ import annotations

from typing import Any

from tests.cli.running import Cli

GIB = 2**30
M = 1_048_576


def planned(run: Cli, *words: object, code: int = 0) -> Any:
    ran = run("plan", *words, "--json")
    assert (ran.code, ran.err) == (code, "")
    return ran.data
