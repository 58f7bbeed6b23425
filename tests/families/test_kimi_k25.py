from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from modelbones.families.registry import build, preset, read_config
from modelbones.tensors import Group
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("kimi-k2.5")


def test_its_text_model_is_kimi_k2_under_another_prefix() -> None:
    inner = {name.removeprefix("language_model.") for name in build(read_config(CONFIG)).structural_tensor_set()}
    assert inner == build(read_config(preset("kimi-k2"))).structural_tensor_set()
    assert build(read_config(CONFIG)).budget() == build(read_config(preset("kimi-k2"))).budget()


def test_its_tower_is_an_open_module() -> None:
    skeleton = build(read_config(CONFIG))
    assert skeleton.open_prefixes == (("vision_tower.", Group.VISION), ("mm_projector.", Group.VISION))
    assert skeleton.tower == ()


def test_without_a_vision_config_there_is_none() -> None:
    assert build(read_config(edited(CONFIG, {"vision_config": GONE}))).open_prefixes == ()


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"text_config": GONE}, "text_config: found missing; expected an object with the sizes of the text model"),
        ({"text_config": []}, "text_config: found []; expected an object"),
        (
            {"text_config.model_type": "kimi_linear"},
            'text_config.model_type: found "kimi_linear"; expected "deepseek_v3" or "kimi_k2"',
        ),
        (
            {"tie_word_embeddings": True},
            "tie_word_embeddings: found true; expected what text_config.tie_word_embeddings says",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
