"""One change anywhere in any preset: it reads, or one of our own errors says why not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.families.registry import build, preset, preset_names, read_config
from tests.families.mutating import mutants, reads_or_refuses

CONFIGS = {name: preset(name) for name in preset_names()}
ONE_CHANGE = {name: mutants(config) for name, config in CONFIGS.items()}


@pytest.mark.parametrize("name", preset_names())
@given(data=st.data())
def test_any_change_reads_or_is_refused(name: str, data: st.DataObject) -> None:
    reads_or_refuses(data.draw(ONE_CHANGE[name]))


@pytest.mark.parametrize("name", preset_names())
def test_any_other_word_for_its_model_is_refused_or_read_as_that_model(name: str) -> None:
    for other in CONFIGS.values():
        reads_or_refuses({**CONFIGS[name], "model_type": other["model_type"]})


@pytest.mark.parametrize("name", preset_names())
def test_what_was_read_is_the_same_every_time(name: str) -> None:
    config: dict[str, Any] = CONFIGS[name]
    assert read_config(config) == read_config(config)
    assert build(read_config(config)).patterns == build(read_config(config)).patterns
