from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset, read_config
from modelbones.ranks import Axis, Ranks
from modelbones.skeleton import Mixer, Mlp, Step
from modelbones.tensors import Group
from modelbones.wiring import MIXER_ONLY, MLP_ONLY
from tests.families.reading_back import names, parameters, pattern, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("nemotron-3-nano-30b-a3b")
PATTERN: str = CONFIG["hybrid_override_pattern"]
WORDS = [{"M": "linear_attention", "*": "full_attention", "E": "moe", "-": "mlp"}[letter] for letter in PATTERN]
DENSE = edited(CONFIG, {"hybrid_override_pattern": "M-*-", "num_hidden_layers": 4})
DRAFTING = {**CONFIG, "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"}


def test_the_30b_keeps_49_082_368_bytes_a_sequence_and_6_144_a_token() -> None:
    budget = skeleton(CONFIG).budget()
    terms = {term.name: term.nbytes(tokens=1) for term in budget.terms}
    # 23 layers of 64 heads x 64 x 128 fp32, and of 3 rows x (4,096 + 2 x 8 x 128) channels bf16.
    assert terms["ssm"] == 23 * 64 * 64 * 128 * 4 == 48_234_496
    assert terms["ssm_conv"] == 23 * 3 * 6_144 * 2 == 847_872
    assert budget.fixed() == 49_082_368
    assert budget.per_token() == 6 * 2 * 2 * 128 * 2 == 6_144


def test_each_layer_has_one_site_and_moe_layers_keep_no_state() -> None:
    bones = skeleton(CONFIG)
    kinds = {(layer.mixer, layer.mlp, layer.steps, len(layer.states)) for layer in bones.layers}
    assert kinds == {
        (Mixer.MAMBA2, Mlp.NONE, MIXER_ONLY, 1),
        (Mixer.ATTENTION, Mlp.NONE, MIXER_ONLY, 1),
        (Mixer.NONE, Mlp.ROUTED_MOE, MLP_ONLY, 0),
    }
    assert [step.kind for step in MLP_ONLY] == [Step.SAVE_RESIDUAL, Step.NORM, Step.MLP]
    assert bones.kv_cache_layers() == (5, 12, 19, 26, 33, 42)
    assert 1 not in bones.state_plan()
    assert len(bones.layers) == 52


def test_the_release_has_6_243_tensors_and_31_577_940_288_parameters() -> None:
    assert len(names(CONFIG)) == 6_243  # what transformers 5.23 saves
    assert parameters(CONFIG) == 31_577_940_288
    assert {"backbone.embeddings.weight", "backbone.norm_f.weight", "lm_head.weight"} <= names(CONFIG)


def test_a_mamba_block_has_eight_tensors_and_one_norm_before_it() -> None:
    found = shapes(CONFIG, "backbone.layers.{layer}.")
    assert found["norm.weight"] == (2688,)
    assert {name: shape for name, shape in found.items() if "mixer.gate" not in name and "proj" not in name} == {
        "norm.weight": (2688,),
        "mixer.conv1d.weight": (6144, 1, 4),
        "mixer.conv1d.bias": (6144,),
        "mixer.dt_bias": (64,),
        "mixer.A_log": (64,),
        "mixer.D": (64,),
        "mixer.norm.weight": (4096,),
    }
    assert found["mixer.in_proj.weight"] == (4096 + 4096 + 2 * 8 * 128 + 64, 2688) == (10304, 2688)


@pytest.mark.parametrize(("ranks", "rows"), [(1, 10304), (8, 1288), (16, 256 + 256 + 2 * 128 + 4)])
def test_input_rows_are_cut_by_heads_and_by_groups_which_are_never_less_than_one(ranks: int, rows: int) -> None:
    (cut,) = pattern(CONFIG, "in_proj.weight").split
    assert cut.widest(Ranks.of({Axis.HEADS: ranks})) == rows


def test_dense_layers_need_an_intermediate_size_and_no_experts() -> None:
    sizes = ("n_routed_experts", "moe_intermediate_size", "moe_shared_expert_intermediate_size", "num_experts_per_tok")
    plain = edited(DENSE, dict.fromkeys(sizes, GONE))
    assert [layer.mlp for layer in skeleton(plain).layers] == [Mlp.NONE, Mlp.DENSE, Mlp.NONE, Mlp.DENSE]
    assert shapes(plain, "backbone.layers.{layer}.mixer.up_proj") == {".weight": (1856, 2688)}
    assert faults(edited(plain, {"intermediate_size": GONE})) == [
        "intermediate_size: found missing; expected a positive integer"
    ]


def test_biases_and_a_latent_width_are_what_the_config_says() -> None:
    biased = names(edited(DENSE, {"use_bias": True, "mlp_bias": True})) - names(DENSE)
    assert {name.partition(".mixer.")[2] for name in biased} == {
        "in_proj.bias",
        "out_proj.bias",
        "up_proj.bias",
        "down_proj.bias",
    }
    latent = shapes({**CONFIG, "moe_latent_size": 1024}, "backbone.layers.{layer}.mixer.")
    assert latent["fc1_latent_proj.weight"] == (1024, 2688)
    assert latent["fc2_latent_proj.weight"] == (2688, 1024)
    assert latent["experts.{expert}.up_proj.weight"] == (1856, 1024)
    assert latent["shared_experts.up_proj.weight"] == (3712, 2688)


def test_layers_may_be_spelled_as_words_under_either_key() -> None:
    for key in ("layers_block_type", "layer_types"):
        spelled = edited({**CONFIG, key: WORDS}, {"hybrid_override_pattern": GONE, "num_hidden_layers": GONE})
        assert skeleton(spelled).layers == skeleton(CONFIG).layers


def test_a_module_apart_joins_in_its_first_layer_and_norms_in_its_last() -> None:
    bones = skeleton(DRAFTING)
    assert bones.mtp is not None
    assert (bones.mtp.index, bones.mtp.mixer, bones.mtp.mlp) == (52, Mixer.ATTENTION, Mlp.ROUTED_MOE)
    assert bones.mtp.steps == (*MIXER_ONLY, *MLP_ONLY)
    module = {name for name in names(DRAFTING, Group.MTP) if ".experts." not in name and "shared" not in name}
    assert module == {
        "mtp.layers.0.eh_proj.weight",
        "mtp.layers.0.enorm.weight",
        "mtp.layers.0.hnorm.weight",
        "mtp.layers.0.norm.weight",
        *(f"mtp.layers.0.mixer.{x}_proj.weight" for x in "qkvo"),
        "mtp.layers.1.norm.weight",
        "mtp.layers.1.mixer.gate.weight",
        "mtp.layers.1.mixer.gate.e_score_correction_bias",
        "mtp.layers.1.final_layernorm.weight",
    }


def test_mlps_are_deferred_though_nothing_spells_mlp() -> None:
    account = skeleton(CONFIG).account(names(CONFIG))
    assert account.is_complete()
    assert account.deferred == 23 * (128 * 2 + 2 + 2)


def test_an_absent_count_of_mtp_layers_is_judged_by_what_is_stored() -> None:
    assumed = {item.path: item.source for item in read_config(CONFIG).declared.assumed}
    assert assumed["num_nextn_predict_layers"] == "what is stored decides in `check`"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"hybrid_override_pattern": GONE},
            "hybrid_override_pattern: found missing; expected letters of M * - E, one a layer, or layers_block_type",
        ),
        (
            {"hybrid_override_pattern": "MX"},
            'hybrid_override_pattern: found "MX"; expected letters of M * - E, one a layer',
        ),
        (
            {"layers_block_type": ["moe", *WORDS[1:]]},
            "layers_block_type: found another block for layer 0; expected what hybrid_override_pattern says",
        ),
        (
            {"layers_block_type": [WORDS[1], WORDS[0], *WORDS[2:]]},
            "layers_block_type: found another block for layers 0, 1; expected what hybrid_override_pattern says",
        ),
        (
            {"layers_block_type": [*WORDS, "moe"]},
            "layers_block_type: found 53 layers; expected what hybrid_override_pattern says",
        ),
        ({"layers_block_type": []}, "layers_block_type: found an empty list; expected a word for each layer"),
        ({"num_hidden_layers": 51}, "num_hidden_layers: found 51; expected the layers of its pattern, 52"),
        ({"mamba_num_heads": 60}, "mamba_num_heads: found 60; expected a multiple of n_groups, 8"),
        (
            {"attention_bias": True},
            "attention_bias: found true; expected false: these attention projections have no bias",
        ),
        ({"n_shared_experts": 2}, "n_shared_experts: found 2; expected one shared expert of its own width, 1"),
        ({"use_conv_bias": GONE}, "use_conv_bias: found missing; expected true or false"),
        ({"moe_latent_size": 0}, "moe_latent_size: found 0; expected a positive integer"),
        (
            {"num_nextn_predict_layers": 1},
            "mtp_hybrid_override_pattern: found missing; "
            "expected letters of M * - E, one a layer, or mtp_layers_block_type",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
