from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.errors import ConfigError, UnknownArchitectureError
from modelbones.families.registry import (
    build,
    families,
    family_of,
    model_types,
    preset,
    preset_names,
    presets_of,
    read_config,
)
from tests.published import nested

KNOWN = ", ".join(model_types())


@pytest.mark.parametrize(
    ("model_type", "closest"),
    [
        ("glm5_nxt", "glm5_next"),
        ("glm5next", "glm5_next"),
        ("glm5-next", "glm5_next"),
        ("GLM5_next_text", "glm5_next_text"),
    ],
)
def test_a_foreign_model_type_is_told_the_closest_one(model_type: str, closest: str) -> None:
    with pytest.raises(UnknownArchitectureError) as error:
        read_config({**nested(), "model_type": model_type})
    assert str(error.value) == (
        f'<mapping>: unknown architecture "{model_type}"; expected one of {KNOWN}; the closest by name is {closest}; '
        "a family is one file of parts and one line in the registry (docs/adding-a-family.md)"
    )
    assert (error.value.model_type, error.value.known) == (model_type, model_types())


def test_a_model_type_like_no_other_has_no_closest() -> None:
    with pytest.raises(UnknownArchitectureError) as error:
        read_config({"model_type": "zzz"})
    assert str(error.value) == (
        f'<mapping>: unknown architecture "zzz"; expected one of {KNOWN}; '
        "a family is one file of parts and one line in the registry (docs/adding-a-family.md)"
    )


def test_a_foreign_config_is_judged_by_its_top_word_alone() -> None:
    with pytest.raises(UnknownArchitectureError):
        read_config({"model_type": "zzz", "text_config": nested()["text_config"]})


def test_a_long_or_unprintable_model_type_is_shown_short_and_printable() -> None:
    """Control characters and lone surrogates of the file reached the terminal as they were."""
    with pytest.raises(UnknownArchitectureError) as error:
        read_config({"model_type": "\ud800\x1b[31m\n" + "x" * 500})
    assert str(error.value).isprintable()
    assert '"\\ud800\\u001b[31m\\nxxx' in str(error.value)
    assert len(error.value.model_type) == 80


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, "missing"),
        ({"model_type": None}, "missing"),
        ({"model_type": 5}, "5"),
        ({"model_type": True}, "true"),
        ({"model_type": ["glm5_next"]}, '["glm5_next"]'),
        ({"model_type": {"a": None}}, '{"a": null}'),
        ({"text_config": {"model_type": "glm5_next_text"}}, "missing"),
    ],
)
def test_a_config_without_a_word_for_its_model_is_refused(values: dict[str, Any], found: str) -> None:
    """A value was shown in Python's spelling, not in JSON's."""
    with pytest.raises(ConfigError) as error:
        read_config(values)
    assert str(error.value) == (
        f"<mapping>: 1 fault in this config; correct each:\n  model_type: found {found}; expected one of {KNOWN}"
    )


@given(st.text(max_size=30))
def test_any_foreign_word_is_unknown(word: str) -> None:
    if word not in model_types():
        with pytest.raises(UnknownArchitectureError):
            read_config({"model_type": word})


def test_every_family_answers_to_the_words_it_declares() -> None:
    assert {word for family in families() for word in family.model_types} == set(model_types())
    for family in families():
        assert family.name in family.model_types
        assert all(family_of(word) is family for word in family.model_types)
        assert family.title
        assert family.verified
    assert family_of("zzz") is None


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_reads_and_builds_and_belongs_to_a_family(name: str) -> None:
    typed = read_config(name)
    assert typed.declared.place == name
    assert build(typed).layers
    assert any(name in presets_of(family) for family in families())


def test_the_presets_are_listed_by_name() -> None:
    assert "glm-5.3-flash" in preset_names()
    assert list(preset_names()) == sorted(preset_names())
    with pytest.raises(KeyError):
        preset("zzz")


def test_a_preset_that_was_changed_is_whole_the_next_time() -> None:
    """The one object behind it was handed out, so a change stayed for everybody."""
    preset("glm-5.3-flash")["text_config"]["hidden_size"] = 1
    assert preset("glm-5.3-flash")["text_config"]["hidden_size"] == 4096


def test_an_existing_path_wins_over_a_preset_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config("glm-5.3-flash").declared.place == "glm-5.3-flash"
    Path("glm-5.3-flash").mkdir()
    Path("glm-5.3-flash/config.json").write_text(json.dumps({"model_type": "zzz"}))
    with pytest.raises(UnknownArchitectureError) as error:
        read_config("glm-5.3-flash")
    assert error.value.place == "glm-5.3-flash/config.json"


def test_a_refused_file_is_named_in_the_refusal(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "glm5_next", "hc_mult": 0}')
    with pytest.raises(ConfigError) as error:
        read_config(tmp_path)
    assert error.value.place == str(file)
    assert str(error.value).startswith(f"{file}: ")
