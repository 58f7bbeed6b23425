from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset
from modelbones.ranks import Axis, Ranks, widest_shape
from modelbones.skeleton import Mixer, Mlp
from modelbones.tensors import Group
from tests.families.reading_back import names, parameters, pattern, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("qwen3.5-35b-a3b")


def test_the_35b_keeps_64_389_120_bytes_a_sequence_and_20_480_a_token() -> None:
    budget = skeleton(CONFIG).budget()
    assert budget.fixed() == 30 * (32 * 128 * 128 * 4 + 3 * 8_192 * 2) == 64_389_120
    assert budget.per_token() == 10 * 2 * 2 * 256 * 2 == 20_480


def test_the_trunk_stacks_its_experts_and_the_module_does_not() -> None:
    stem = "model.language_model.layers.{layer}.mlp."
    assert shapes(CONFIG, stem) == {
        "gate.weight": (256, 2048),
        "shared_expert.gate_proj.weight": (512, 2048),
        "shared_expert.up_proj.weight": (512, 2048),
        "shared_expert.down_proj.weight": (2048, 512),
        "shared_expert_gate.weight": (1, 2048),
        "experts.gate_up_proj": (256, 1024, 2048),
        "experts.down_proj": (256, 2048, 512),
    }
    # Of the release's index: two tensors a layer on 40 layers (sgl-project/sglang-jax issue 1251).
    assert len([name for name in names(CONFIG) if ".experts." in name]) == 80
    assert "mtp.layers.0.mlp.experts.255.gate_proj.weight" in names(CONFIG, Group.MTP)


def test_a_stacked_tensor_is_cut_by_experts_or_inside_each_gate_and_up_apart() -> None:
    stacked = pattern(CONFIG, "experts.gate_up_proj")
    assert widest_shape(stacked.shape, stacked.split, Ranks.of({Axis.EXPERTS: 3})) == (86, 1024, 2048)
    assert widest_shape(stacked.shape, stacked.split, Ranks.of({Axis.EXPERT_FFN: 3})) == (256, 2 * 171, 2048)


def test_every_layer_is_routed_and_the_module_attends() -> None:
    """Field case A21, ggml-org/llama.cpp issue 23033: the interval ends before the MTP block."""
    bones = skeleton(CONFIG)
    assert {layer.mlp for layer in bones.layers} == {Mlp.ROUTED_MOE}
    assert len([layer for layer in bones.layers if layer.mixer is Mixer.ATTENTION]) == 10
    assert bones.mtp is not None
    assert (bones.mtp.index, bones.mtp.mixer) == (40, Mixer.ATTENTION)


def test_the_trunk_without_its_tower_has_34_660_610_688_parameters() -> None:
    # transformers 5.23 counts 35,114,261,360 with a default tower of 453,650,672.
    assert parameters(CONFIG) == 34_660_610_688


def test_text_only_files_leave_the_wrapper_s_prefix_out() -> None:
    text = {**CONFIG["text_config"], "model_type": "qwen3_5_moe_text"}
    assert skeleton(text).prefix == "model."
    assert skeleton(text).layers == skeleton(CONFIG).layers


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"num_experts": GONE}, "text_config.num_experts: found missing; expected a positive integer"),
        ({"num_experts_per_tok": 300}, "text_config.num_experts_per_tok: found 300; expected at most num_experts, 256"),
        (
            {"shared_expert_intermediate_size": 0},
            "text_config.shared_expert_intermediate_size: found 0; expected a positive integer",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, {f"text_config.{key}": value for key, value in edits.items()})) == [expected]
