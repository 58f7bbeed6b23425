from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset
from modelbones.skeleton import Mlp
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("qwen3-30b-a3b")


def test_a_token_costs_98_304_bytes_of_48_layers() -> None:
    assert skeleton(CONFIG).budget().per_token() == 48 * 2 * 4 * 128 * 2 == 98_304
    assert parameters(CONFIG) == 30_532_122_624
    assert len(names(CONFIG)) == 18_867


def test_a_routed_block_has_no_shared_expert_and_no_selection_bias() -> None:
    assert shapes(CONFIG, "model.layers.{layer}.mlp.") == {
        "gate.weight": (128, 2048),
        "experts.{expert}.gate_proj.weight": (768, 2048),
        "experts.{expert}.up_proj.weight": (768, 2048),
        "experts.{expert}.down_proj.weight": (2048, 768),
    }


def test_dense_layers_have_the_other_width() -> None:
    mixed = {**CONFIG, "mlp_only_layers": [0, 47]}
    assert [layer.index for layer in skeleton(mixed).layers if layer.mlp is Mlp.DENSE] == [0, 47]
    assert shapes(mixed, "model.layers.{layer}.mlp.up_proj") == {".weight": (6144, 2048)}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"use_sliding_window": True},
            "use_sliding_window: found true; expected false: engines disagree on which layers would have the window",
        ),
        ({"num_experts": GONE}, "num_experts: found missing; expected a positive integer"),
        ({"decoder_sparse_step": 0}, "decoder_sparse_step: found 0; expected a positive integer"),
        ({"mlp_only_layers": 3}, "mlp_only_layers: found 3; expected a list of layer indices"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
