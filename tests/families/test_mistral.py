from __future__ import annotations

from typing import Any

import pytest

from modelbones.buffers import Rewind
from modelbones.families.registry import preset
from modelbones.parts.part import StateKind
from modelbones.skeleton import Mixer
from tests.families.reading_back import names, parameters, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("mistral-7b")


def test_a_window_of_4_096_holds_536_870_912_bytes_and_no_more() -> None:
    budget = skeleton(CONFIG).budget()
    assert budget.per_token() == 0
    assert budget.for_sequence(1_000) == 32 * 2 * 8 * 128 * 2 * 1_000
    assert budget.for_sequence(131_072) == budget.for_sequence(4_096) == 32 * 4_096 * 4_096 == 536_870_912
    assert parameters(CONFIG) == 7_241_732_096
    assert len(names(CONFIG)) == 291


def test_a_row_that_left_the_window_takes_a_replay_to_bring_back() -> None:
    layer = skeleton(CONFIG).layers[0]
    assert (layer.mixer, layer.states) == (Mixer.WINDOW, (StateKind.WINDOW_KV,))
    assert {buffer.rewind for buffer in layer.buffers} == {Rewind.REPLAY}


def test_a_null_window_is_attention_over_all_tokens() -> None:
    # mistralai/Mistral-7B-v0.3 writes null.
    bones = skeleton({**CONFIG, "sliding_window": None})
    assert {layer.mixer for layer in bones.layers} == {Mixer.ATTENTION}
    assert bones.budget().per_token() == 131_072


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"sliding_window": GONE}, "sliding_window: found missing; expected a window in tokens, or null for none"),
        ({"sliding_window": 0}, "sliding_window: found 0; expected a positive integer"),
        (
            {"layer_types": ["full_attention"] + ["sliding_attention"] * 31},
            "layer_types: found another word for layer 0; "
            "expected sliding_attention on every layer, as sliding_window says",
        ),
        ({"num_key_value_heads": 3}, "num_key_value_heads: found 3; expected a divisor of num_attention_heads, 32"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
