from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset
from modelbones.skeleton import Mixer
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("mixtral-8x7b")


def test_a_token_costs_131_072_bytes_and_46_702_792_704_parameters_stand_in_995_tensors() -> None:
    assert skeleton(CONFIG).budget().per_token() == 131_072
    assert parameters(CONFIG) == 46_702_792_704
    assert len(names(CONFIG)) == 3 + 32 * (4 + 2 + 1 + 8 * 3) == 995


def test_experts_are_called_w1_w2_and_w3_in_block_sparse_moe() -> None:
    assert shapes(CONFIG, "model.layers.{layer}.block_sparse_moe.") == {
        "gate.weight": (8, 4096),
        "experts.{expert}.w1.weight": (14336, 4096),
        "experts.{expert}.w3.weight": (14336, 4096),
        "experts.{expert}.w2.weight": (4096, 14336),
    }


def test_their_names_are_deferred_though_they_do_not_spell_mlp() -> None:
    account = skeleton(CONFIG).account(names(CONFIG))
    assert account.is_complete()
    assert account.deferred == 32 * 25


def test_a_window_is_on_every_layer_or_on_none() -> None:
    windowed = skeleton({**CONFIG, "sliding_window": 4096})
    assert {layer.mixer for layer in windowed.layers} == {Mixer.WINDOW}
    assert {layer.mixer for layer in skeleton(edited(CONFIG, {"sliding_window": GONE})).layers} == {Mixer.ATTENTION}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"num_experts_per_tok": 9}, "num_experts_per_tok: found 9; expected at most num_local_experts, 8"),
        (
            {"layer_types": ["sliding_attention"] + ["full_attention"] * 31},
            "layer_types: found another word for layer 0; "
            "expected full_attention on every layer, as sliding_window says",
        ),
        ({"sliding_window": -1}, "sliding_window: found -1; expected a positive integer"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
