"""`Glm5NextDsaConfig`: read from a config, and every size it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from modelbones import read_config
from modelbones.errors import ConfigError, UnknownArchitectureError, UsageError
from modelbones.live import Glm5NextDsaConfig
from tests import published
from tests.live.devices import PRESET
from tests.published import GONE, edited

TAIL_KEY = "text_config.index_kpool_always_select_tail"


def test_the_published_config_in_the_caches_words() -> None:
    assert Glm5NextDsaConfig.from_config(published.nested()) == Glm5NextDsaConfig(
        hidden=4096,
        index_heads=32,
        index_head_dim=128,
        index_kpool=4,
        index_topk=2048,
        always_select_tail=True,
        local_heads=64,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=256,
        qk_rope_head_dim=0,
        v_head_dim=256,
        max_context=16_384,
    )
    assert PRESET.latent_width == 512


def test_a_typed_and_a_raw_config_say_the_same() -> None:
    assert Glm5NextDsaConfig.from_config(read_config("glm-5.3-flash")) == PRESET
    assert Glm5NextDsaConfig.from_config(published.flat()) == PRESET


def test_the_context_and_this_ranks_heads_are_passed() -> None:
    made = Glm5NextDsaConfig.from_config(published.nested(), max_context=131_072, local_heads=8)
    assert made == replace(PRESET, max_context=131_072, local_heads=8)


def test_a_config_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        PRESET.index_kpool = 1  # type: ignore[misc]


def test_a_tail_nobody_declares_is_refused() -> None:
    config = edited(published.nested(), {TAIL_KEY: GONE})
    with pytest.raises(ConfigError) as refused:
        Glm5NextDsaConfig.from_config(config)
    assert str(refused.value) == (
        "<mapping>: 1 fault in this config; correct each:\n"
        "  index_kpool_always_select_tail: found missing; expected true or false: engines fill it differently "
        "(transformers true, llama.cpp false); pass always_select_tail"
    )
    for tail in (True, False):
        assert Glm5NextDsaConfig.from_config(config, always_select_tail=tail).always_select_tail is tail


@pytest.mark.parametrize("declared", [True, False])
def test_a_tail_passed_against_the_config_is_refused(declared: bool) -> None:
    config = edited(published.nested(), {TAIL_KEY: declared})
    assert Glm5NextDsaConfig.from_config(config).always_select_tail is declared
    assert Glm5NextDsaConfig.from_config(config, always_select_tail=declared).always_select_tail is declared
    with pytest.raises(ConfigError, match="expected what always_select_tail was passed as"):
        Glm5NextDsaConfig.from_config(config, always_select_tail=not declared)


def test_more_heads_on_a_rank_than_the_model_has_are_refused() -> None:
    assert Glm5NextDsaConfig.from_config(published.nested(), local_heads=64).local_heads == 64
    with pytest.raises(ConfigError, match="local_heads: found 65; expected at most 64, the model's heads"):
        Glm5NextDsaConfig.from_config(published.nested(), local_heads=65)


@pytest.mark.parametrize(
    "passed", [{"max_context": -1}, {"local_heads": 0}, {"local_heads": "8"}, {"max_context": True}]
)
def test_a_passed_size_is_validated(passed: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(passed))}: found "):
        Glm5NextDsaConfig.from_config(published.nested(), **passed)


def test_another_family_is_refused() -> None:
    with pytest.raises(UnknownArchitectureError):
        Glm5NextDsaConfig.from_config({"model_type": "no_such_model"})
    with pytest.raises(UsageError, match="Glm5NextDsaConfig: found int; expected a glm5_next config"):
        Glm5NextDsaConfig.from_config(3)  # type: ignore[arg-type]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"index_topk": 0}, "index_topk: found 0; expected an integer, 1 or more"),
    ({"index_kpool": 0}, "index_kpool: found 0; expected an integer, 1 or more"),
    ({"index_topk": 2050}, "index_topk: found 2050; expected a multiple of index_kpool, 4"),
    ({"index_kpool": 16}, "index_kpool: found 16; expected at most 8: the compress kernel pools no more"),
    ({"kv_lora_rank": 0}, "kv_lora_rank: found 0; expected a latent width above 0: kv_lora_rank + qk_rope_head_dim"),
    ({"local_heads": 0}, "local_heads: found 0; expected an integer, 1 or more"),
    ({"index_head_dim": 0}, "index_head_dim: found 0; expected an integer, 1 or more"),
    ({"max_context": -1}, "max_context: found -1; expected an integer, 0 or more"),
    ({"hidden": True}, "hidden: found true; expected an integer, 1 or more"),
    ({"index_topk": 2048.0}, "index_topk: found 2048.0; expected an integer, 1 or more"),
    ({"always_select_tail": None}, "always_select_tail: found null; expected true or false"),
    ({"always_select_tail": 1}, "always_select_tail: found 1; expected true or false"),
]


@pytest.mark.parametrize(("change", "fault"), REFUSED)
def test_a_size_no_cache_could_serve_is_refused(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        replace(PRESET, **change).validate()
    assert len(refused.value.faults) == 1
    assert str(refused.value).startswith(f"Glm5NextDsaConfig: 1 fault in this config; correct each:\n  {fault}")


@pytest.mark.parametrize("name", [field.name for field in fields(Glm5NextDsaConfig)])
def test_no_size_may_be_negative_or_of_another_type(name: str) -> None:
    for value in (-1, "4", None, 1.5):
        with pytest.raises(ConfigError, match=rf"{name}: found "):
            replace(PRESET, **{name: value}).validate()


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        replace(PRESET, index_topk=0, index_kpool=9, local_heads=-2).validate()
    assert [fault.path for fault in refused.value.faults] == ["index_kpool", "index_topk", "local_heads"]


@pytest.mark.parametrize("change", [{"index_kpool": 8}, {"index_kpool": 1}, {"max_context": 0}, {"max_context": 3}])
def test_the_widest_and_the_least_are_good(change: dict[str, Any]) -> None:
    replace(PRESET, **change).validate()


def test_a_latent_may_be_all_rotary() -> None:
    replace(PRESET, kv_lora_rank=0, qk_rope_head_dim=64).validate()
    assert replace(PRESET, qk_rope_head_dim=64).latent_width == 576
