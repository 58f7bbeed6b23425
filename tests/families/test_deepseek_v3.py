from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from modelbones.families.registry import build, preset, read_config
from modelbones.skeleton import Mixer, Mlp
from modelbones.tensors import Group
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("deepseek-v3")


def _names(config: dict[str, Any], group: Group) -> set[str]:
    patterns = build(read_config(config)).patterns
    return {name for pattern in patterns if pattern.group is group for name in pattern.names()}


def test_a_token_costs_a_latent_and_a_rotary_key_on_each_of_61_layers() -> None:
    budget = build(read_config(CONFIG)).budget()
    assert budget.fixed() == 0
    assert budget.per_token() == 61 * (512 + 64) * 2 == 70_272
    assert [(term.name, term.num_layers) for term in budget.terms] == [("mla_kv", 61)]


def test_the_first_three_layers_are_dense() -> None:
    layers = build(read_config(CONFIG)).layers
    assert [layer.index for layer in layers if layer.mlp is Mlp.DENSE] == [0, 1, 2]
    assert {layer.mixer for layer in layers} == {Mixer.MLA}


def test_the_trunk_has_671_026_419_200_parameters() -> None:
    # The release's own count of the main model is 671B, and 14B for the MTP module beside it.
    patterns = build(read_config(CONFIG)).patterns
    trunk = sum(pattern.numel * pattern.count for pattern in patterns if pattern.group is Group.TRUNK)
    mtp = sum(pattern.numel * pattern.count for pattern in patterns if pattern.group is Group.MTP)
    assert trunk == 671_026_419_200
    copies, join, norms = 2 * 129_280 * 7_168, 7_168 * 2 * 7_168, 5 * 7_168
    attention = 11_010_048 + 1_536 + 37_748_736 + 4_128_768 + 512 + 16_777_216 + 117_440_512
    routed = 256 * 7_168 + 256 + (1 + 256) * 3 * 2_048 * 7_168
    assert mtp == copies + join + norms + attention + routed == 13_463_426_304


def test_the_mtp_layer_is_layer_61_with_its_own_head_and_optional_copies() -> None:
    skeleton = build(read_config(CONFIG))
    assert skeleton.mtp is not None
    assert (skeleton.mtp.index, skeleton.mtp.mlp) == (61, Mlp.ROUTED_MOE)
    names = _names(CONFIG, Group.MTP)
    for leaf in ("eh_proj.weight", "enorm.weight", "hnorm.weight", "shared_head.norm.weight"):
        assert f"model.layers.61.{leaf}" in names
    optional = {p.name for p in skeleton.patterns if not p.required}
    assert optional == {"model.layers.{layer}.embed_tokens.weight", "model.layers.{layer}.shared_head.head.weight"}


def test_kimi_k2_is_the_same_architecture_under_a_word_of_its_own() -> None:
    config = preset("kimi-k2")
    renamed = {**config, "model_type": "deepseek_v3"}
    assert build(read_config(config)).patterns == build(read_config(renamed)).patterns
    assert build(read_config(config)).mtp is None


def test_a_null_query_rank_is_one_matrix() -> None:
    # moonshotai/Moonlight-16B-A3B is this architecture with a null rank.
    names = _names(edited(CONFIG, {"q_lora_rank": None}), Group.TRUNK)
    assert "model.layers.0.self_attn.q_proj.weight" in names
    assert not any(".q_a_" in name or ".q_b_" in name for name in names)


def test_biases_stand_on_the_projections_no_head_owns() -> None:
    plain, biased = _names(CONFIG, Group.TRUNK), _names(edited(CONFIG, {"attention_bias": True}), Group.TRUNK)
    added = {name.removeprefix("model.layers.0.self_attn.") for name in biased - plain if ".layers.0." in name}
    assert added == {"q_a_proj.bias", "kv_a_proj_with_mqa.bias", "o_proj.bias"}


def test_every_other_layer_is_routed_where_the_config_says_so() -> None:
    layers = build(read_config(edited(CONFIG, {"moe_layer_freq": 2}))).layers
    assert [layer.index for layer in layers if layer.mlp is Mlp.ROUTED_MOE] == list(range(4, 61, 2))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"q_lora_rank": GONE},
            "q_lora_rank: found missing; expected a positive integer, or null where one matrix makes the query",
        ),
        ({"kv_lora_rank": 0}, "kv_lora_rank: found 0; expected a positive integer"),
        ({"num_key_value_heads": 8}, "num_key_value_heads: found 8; expected num_attention_heads, 128"),
        ({"qk_head_dim": 128}, "qk_head_dim: found 128; expected qk_nope_head_dim + qk_rope_head_dim, 192"),
        ({"num_experts_per_tok": 257}, "num_experts_per_tok: found 257; expected at most n_routed_experts, 256"),
        ({"num_nextn_predict_layers": 2}, "num_nextn_predict_layers: found 2; expected 0 or 1 MTP layers"),
        ({"first_k_dense_replace": 62}, "first_k_dense_replace: found 62; expected an integer from 0 to 61"),
        ({"n_routed_experts": GONE}, "n_routed_experts: found missing; expected a positive integer"),
        ({"moe_layer_freq": 0}, "moe_layer_freq: found 0; expected a positive integer"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]


def test_absent_keys_with_one_meaning_are_listed() -> None:
    edits = {"attention_bias": GONE, "moe_layer_freq": GONE, "num_nextn_predict_layers": GONE}
    config = read_config(edited(CONFIG, edits))
    assert {item.path for item in config.declared.assumed} == set(edits)


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
