from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset, read_config
from modelbones.skeleton import Mixer
from tests.families.reading_back import names, parameters, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("qwen2.5-7b")
ON = {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 21}


def test_a_token_costs_57_344_bytes_of_28_layers() -> None:
    assert skeleton(CONFIG).budget().per_token() == 28 * 2 * 4 * 128 * 2 == 57_344
    assert parameters(CONFIG) == 7_615_616_512
    assert len(names(CONFIG)) == 339


def test_queries_keys_and_values_have_biases_and_the_output_has_none() -> None:
    stem = "model.layers.0.self_attn."
    biases = {name.removeprefix(stem) for name in names(CONFIG) if name.startswith(stem) and name.endswith(".bias")}
    assert biases == {"q_proj.bias", "k_proj.bias", "v_proj.bias"}


def test_a_window_that_is_switched_off_is_none() -> None:
    assert {layer.mixer for layer in skeleton(CONFIG).layers} == {Mixer.ATTENTION}
    assert CONFIG["sliding_window"] == 131_072


def test_a_window_stands_on_the_layers_from_max_window_layers_up() -> None:
    bones = skeleton({**CONFIG, **ON})
    assert [layer.index for layer in bones.layers if layer.mixer is Mixer.WINDOW] == list(range(21, 28))
    budget = bones.budget()
    assert budget.per_token() == 21 * 2_048
    assert budget.for_sequence(131_072) == 21 * 2_048 * 131_072 + 7 * 2_048 * 4_096


def test_absent_keys_with_one_meaning_are_listed() -> None:
    assumed = {item.path for item in read_config(edited(CONFIG, {"use_sliding_window": GONE})).declared.assumed}
    assert assumed == {"use_sliding_window", "head_dim"}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({**ON, "sliding_window": None}, "sliding_window: found missing; expected a positive integer"),
        ({**ON, "max_window_layers": None}, "max_window_layers: found missing; expected an integer, 0 or more"),
        (
            {"layer_types": ["sliding_attention"] + ["full_attention"] * 27},
            "layer_types: found another word for layer 0; expected sliding_attention on the layers from "
            "max_window_layers up, and only with use_sliding_window",
        ),
        ({"use_sliding_window": "no"}, 'use_sliding_window: found "no"; expected true or false'),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
