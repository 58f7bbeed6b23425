from __future__ import annotations

import pytest

from modelbones.families.registry import preset
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("qwen3-8b")


def test_a_token_costs_147_456_bytes_of_36_layers() -> None:
    assert skeleton(CONFIG).budget().per_token() == 36 * 2 * 8 * 128 * 2 == 147_456
    assert parameters(CONFIG) == 8_190_735_360
    assert len(names(CONFIG)) == 399


def test_queries_and_keys_are_normed_head_by_head() -> None:
    attention = shapes(CONFIG, "model.layers.{layer}.self_attn.")
    assert attention["q_norm.weight"] == attention["k_norm.weight"] == (128,)
    assert not any(name.endswith(".bias") for name in names(CONFIG))


def test_the_4b_has_heads_wider_than_its_hidden_size_divided() -> None:
    # Qwen/Qwen3-4B: hidden 2560, 32 heads of 128, so that queries are 4,096 wide.
    four = {**CONFIG, "hidden_size": 2560, "intermediate_size": 9728, "tie_word_embeddings": True}
    assert shapes(four, "model.layers.{layer}.self_attn.q_proj") == {".weight": (4096, 2560)}
    assert parameters(four) == 4_022_468_096


def test_biases_are_what_the_config_says() -> None:
    biased = names({**CONFIG, "attention_bias": True}) - names(CONFIG)
    assert {name.rpartition("self_attn.")[2] for name in biased} == {f"{x}_proj.bias" for x in "qkvo"}


@pytest.mark.parametrize("key", ["head_dim", "num_attention_heads", "intermediate_size"])
def test_a_missing_size_is_refused(key: str) -> None:
    assert faults(edited(CONFIG, {key: GONE})) == [f"{key}: found missing; expected a positive integer"]
