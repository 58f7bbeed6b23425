from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset, read_config
from modelbones.skeleton import Mixer, Step
from modelbones.tensors import Group
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("gemma-3-4b")
TEXT = {**CONFIG["text_config"], "model_type": "gemma3_text"}
FULL = [5, 11, 17, 23, 29]


def test_five_full_layers_cost_20_480_bytes_a_token_and_29_windows_of_1_024_beside() -> None:
    budget = skeleton(CONFIG).budget()
    row = 2 * 4 * 256 * 2
    assert budget.per_token() == 5 * row == 20_480
    assert budget.for_sequence(131_072) == 5 * row * 131_072 + 29 * row * 1_024 == 2_805_989_376


def test_every_sixth_layer_attends_to_all_tokens() -> None:
    assert [layer.index for layer in skeleton(CONFIG).layers if layer.mixer is Mixer.ATTENTION] == FULL
    words = ["full_attention" if index in FULL else "sliding_attention" for index in range(34)]
    spelled = {**TEXT, "layer_types": words}
    assert skeleton(spelled).layers == skeleton(TEXT).layers
    assert skeleton({**spelled, "sliding_window_pattern": 6}).layers == skeleton(TEXT).layers


def test_norms_stand_on_both_sides_of_a_sublayer() -> None:
    layer = skeleton(CONFIG).layers[0]
    assert [(step.kind, step.weight) for step in layer.steps] == [
        (Step.SAVE_RESIDUAL, None),
        (Step.NORM, "input_layernorm.weight"),
        (Step.MIXER, None),
        (Step.NORM, "post_attention_layernorm.weight"),
        (Step.SAVE_RESIDUAL, None),
        (Step.NORM, "pre_feedforward_layernorm.weight"),
        (Step.MLP, None),
        (Step.NORM, "post_feedforward_layernorm.weight"),
    ]
    assert {name for name in shapes(TEXT, "model.layers.{layer}.") if "layernorm" in name} == {
        step.weight for step in layer.steps if step.weight
    }


def test_the_text_model_has_3_880_263_168_parameters_in_444_tensors_and_its_head_is_the_embedding() -> None:
    assert parameters(CONFIG) == parameters(TEXT) == 3_880_263_168
    assert len(names(CONFIG)) == len(names(TEXT)) == 444
    assert [p.name for p in skeleton(CONFIG).patterns if not p.required] == ["language_model.lm_head.weight"]
    assert [p.name for p in skeleton(TEXT).patterns if not p.required] == ["lm_head.weight"]


def test_the_tower_and_its_projector_are_open() -> None:
    assert skeleton(CONFIG).prefix == "language_model.model."
    assert skeleton(CONFIG).open_prefixes == (
        ("vision_tower.", Group.VISION),
        ("multi_modal_projector.", Group.VISION),
    )
    assert skeleton(TEXT).open_prefixes == ()
    account = skeleton(CONFIG).account(names(CONFIG) | {"vision_tower.post_layernorm.weight"})
    assert account.is_complete()


def test_the_sizes_its_own_config_leaves_out_are_listed() -> None:
    assumed = {item.path: item.meaning for item in read_config(CONFIG).declared.assumed}
    assert assumed == {
        "text_config.num_attention_heads": "8: query heads",
        "text_config.num_key_value_heads": "4: key-value heads",
        "text_config.head_dim": "256: elements a head",
        "text_config.vocab_size": "262,208: rows of the embedding",
        "text_config.sliding_window_pattern": "6: every 6th layer attends to all tokens",
        "text_config.attention_bias": "false: no projection has one",
        "text_config.tie_word_embeddings": "true: the head is the embedding",
    }


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"sliding_window": GONE}, "sliding_window: found missing; expected a positive integer"),
        (
            {"use_bidirectional_attention": True},
            "use_bidirectional_attention: found true; "
            "expected false: a causal decoder; an embedding model keeps no state",
        ),
        (
            {"sliding_window_pattern": 6, "_sliding_window_pattern": 5},
            "_sliding_window_pattern: found 5; expected what sliding_window_pattern says",
        ),
        (
            {"sliding_window_pattern": 5, "layer_types": ["full_attention"] * 34},
            "layer_types: found another word for layers 0, 1, 2, 3, 5, 6 and 22 more; "
            "expected what sliding_window_pattern says, 5",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(TEXT, edits)) == [expected]
