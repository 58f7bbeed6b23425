"""Every published row whose family exists, as a small log: each figure comes out again."""

from __future__ import annotations

import pytest

from modelbones.explain import Given, explain, read_log
from tests.engines.vllm.log import Log
from tests.engines.vllm.logs import LOGS
from tests.engines.vllm.models import MODELS
from tests.explain.printing import lines_of

NAMES = {"block": "block_tokens", "padding": "padding_percent", "tokens": "cache_tokens", "concurrency": "concurrency"}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.id}: {log.source}")
def test_a_published_log_is_explained(log: Log) -> None:
    read = read_log(lines_of(log))
    assert read is not None
    explained = explain(read, MODELS[log.model], Given.of(log.settings))
    assert explained.refused == ""
    assert explained.needed == ()
    assert [
        (figure.name, figure.logged, figure.computed) for figure in explained.figures if figure.matches is False
    ] == []
    matching = {figure.name: figure.logged for figure in explained.figures if figure.matches}
    shown = {NAMES[name]: value for name, value in log.printed.items() if name in NAMES}
    printed = {figure.name for figure in explained.figures}
    assert {name: value for name, value in shown.items() if name in printed} == {
        name: value for name, value in matching.items() if name in shown
    }
