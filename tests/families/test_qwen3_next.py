from __future__ import annotations

from typing import Any

import pytest

from modelbones.buffers import Home, Rewind
from modelbones.families.registry import preset, read_config
from modelbones.parts.part import StateKind
from modelbones.ranks import Axis, Ranks
from modelbones.reserve import kept_outside_pages, per_sequence_state_bytes
from modelbones.skeleton import Mixer, Mlp
from modelbones.tensors import Group
from tests.families.reading_back import names, parameters, pattern, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("qwen3-next-80b-a3b")
FULL = list(range(3, 48, 4))
WORDS = ["full_attention" if index in FULL else "linear_attention" for index in range(48)]


def test_the_80b_keeps_77_266_944_bytes_a_sequence_and_24_576_a_token() -> None:
    budget = skeleton(CONFIG).budget()
    terms = {term.name: term.nbytes(tokens=0) for term in budget.terms}
    # 36 layers of 32 value heads x 128 x 128 fp32, and of 3 rows x (2 x 2,048 + 4,096) channels bf16.
    assert terms["gdn_recurrent"] == 36 * 32 * 128 * 128 * 4 == 75_497_472
    assert terms["gdn_conv"] == 36 * 3 * 8_192 * 2 == 1_769_472
    assert budget.fixed() == 77_266_944
    assert budget.per_token() == 12 * 2 * 2 * 256 * 2 == 24_576
    assert budget.for_sequence(131_072) == 3_298_492_416


def test_every_fourth_layer_attends_and_the_mtp_module_does_though_its_index_would_not() -> None:
    bones = skeleton(CONFIG)
    assert [layer.index for layer in bones.layers if layer.mixer is Mixer.ATTENTION] == FULL
    assert bones.mtp is not None
    assert (bones.mtp.index, bones.mtp.mixer, bones.mtp.states) == (48, Mixer.ATTENTION, (StateKind.KV,))
    assert bones.kv_cache_layers() == (*FULL, 48)
    assert bones.state_plan()[0] is StateKind.GDN_RECURRENT


def test_names_count_74_391_in_the_trunk_and_1_553_in_the_module() -> None:
    assert len(names(CONFIG)) == 74_391  # what transformers 5.23 saves
    # 6 attention, 2 norms, 512 x 3 experts, router, 3 + 1 shared, 4 around.
    assert len(names(CONFIG, Group.MTP)) == 6 + 2 + 512 * 3 + 1 + 4 + 4 == 1_553
    assert parameters(CONFIG) == 79_674_391_296


def test_the_module_stands_under_mtp_with_its_layer_numbered_0() -> None:
    module = names(CONFIG, Group.MTP)
    assert {name for name in module if ".layers." not in name} == {
        "mtp.fc.weight",
        "mtp.norm.weight",
        "mtp.pre_fc_norm_embedding.weight",
        "mtp.pre_fc_norm_hidden.weight",
    }
    assert {name.partition(".layers.")[2].partition(".")[0] for name in module} == {"", "0"}
    assert "mtp.layers.0.mlp.experts.511.down_proj.weight" in module
    assert all(p.layers == () for p in skeleton(CONFIG).patterns if p.group is Group.MTP)


def test_inputs_are_fused_by_key_head() -> None:
    assert shapes(CONFIG, "model.layers.{layer}.linear_attn.") == {
        "in_proj_qkvz.weight": (12288, 2048),
        "in_proj_ba.weight": (64, 2048),
        "conv1d.weight": (8192, 1, 4),
        "dt_bias": (32,),
        "A_log": (32,),
        "norm.weight": (128,),
        "out_proj.weight": (2048, 4096),
    }
    (cut,) = pattern(CONFIG, "in_proj_qkvz.weight").split
    assert cut.blocks == ((12288, 16),)
    assert cut.widest(Ranks.of({Axis.HEADS: 8})) == 2 * (12288 // 16)


def test_the_query_projection_holds_a_gate() -> None:
    attention = shapes(CONFIG, "model.layers.{layer}.self_attn.")
    assert attention["q_proj.weight"] == (2 * 16 * 256, 2048)
    assert attention["o_proj.weight"] == (2048, 16 * 256)
    assert attention["q_norm.weight"] == attention["k_norm.weight"] == (256,)


def test_recurrent_state_needs_a_snapshot_and_lies_outside_the_pages() -> None:
    bones = skeleton(CONFIG)
    recurrent, conv = bones.layers[0].buffers
    assert (recurrent.home, recurrent.rewind) == (conv.home, conv.rewind) == (Home.SLOT, Rewind.SNAPSHOT)
    assert kept_outside_pages(bones) == ("conv", "recurrent")
    assert conv.drafting(2).shape == (5, 8192)


@pytest.mark.parametrize(("ranks", "heads", "channels"), [(1, 32, 8192), (2, 16, 4096), (16, 2, 512), (32, 1, 384)])
def test_ranks_share_state_by_heads(ranks: int, heads: int, channels: int) -> None:
    recurrent, conv = skeleton(CONFIG).layers[0].buffers
    shared = Ranks.of({Axis.HEADS: ranks})
    assert recurrent.row_bytes(ranks=shared) == heads * 128 * 128 * 4
    # Past 16 ranks every one keeps a whole query and key head beside its value heads.
    assert conv.row_bytes(ranks=shared) == 3 * channels * 2


def test_the_config_names_no_module_so_the_group_may_be_absent() -> None:
    assert skeleton(CONFIG).optional_groups == {Group.MTP}
    declared = skeleton({**CONFIG, "num_nextn_predict_layers": 1})
    assert declared.optional_groups == frozenset()
    assert declared.mtp is not None
    assert skeleton({**CONFIG, "num_nextn_predict_layers": 0}).mtp is None


def test_layers_may_be_spelled_as_words() -> None:
    spelled = edited({**CONFIG, "layer_types": WORDS}, {"full_attention_interval": GONE})
    assert skeleton(spelled).layers == skeleton(CONFIG).layers
    assert skeleton({**CONFIG, "layer_types": WORDS}).layers == skeleton(CONFIG).layers


def test_dense_layers_are_those_named_and_those_off_the_step() -> None:
    dense = skeleton(edited(CONFIG, {"mlp_only_layers": [1], "decoder_sparse_step": 2})).layers
    assert [layer.index for layer in dense if layer.mlp is Mlp.ROUTED_MOE] == list(range(3, 48, 2))


def test_the_seeds_reserve_charges_it_nothing() -> None:
    assert per_sequence_state_bytes(CONFIG, 131_072, spec_on=True).total() == 0


def test_absent_keys_with_one_meaning_are_listed() -> None:
    config = read_config(edited(CONFIG, {"decoder_sparse_step": GONE, "tie_word_embeddings": GONE}))
    assert {item.path: item.meaning for item in config.declared.assumed} == {
        "attention_bias": "false: no projection has one",
        "decoder_sparse_step": "1: every layer that mlp_only_layers does not name is routed",
        "num_nextn_predict_layers": "1, which a release may leave out whole",
        "tie_word_embeddings": "false: the head is a tensor of its own",
    }


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"full_attention_interval": GONE},
            "layer_types: found missing; expected a list of 48 words, or full_attention_interval",
        ),
        ({"full_attention_interval": 0}, "full_attention_interval: found 0; expected a positive integer"),
        (
            {"layer_types": ["full_attention", *WORDS[1:]]},
            "layer_types: found another word for layer 0; expected what full_attention_interval says, 4",
        ),
        (
            {"layer_types": ["sliding_attention", *WORDS[1:]]},
            'layer_types[0]: found "sliding_attention"; expected one of full_attention, linear_attention',
        ),
        ({"layer_types": WORDS[1:]}, "layer_types: found a list of 47; expected a list of 48 words"),
        (
            {"linear_num_value_heads": 33},
            "linear_num_value_heads: found 33; expected a multiple of linear_num_key_heads, 16",
        ),
        ({"linear_conv_kernel_dim": GONE}, "linear_conv_kernel_dim: found missing; expected a positive integer"),
        ({"num_experts_per_tok": 513}, "num_experts_per_tok: found 513; expected at most num_experts, 512"),
        ({"mlp_only_layers": [48]}, "mlp_only_layers[0]: found 48; expected a layer index from 0 to 47, each once"),
        ({"num_local_experts": 8}, "num_local_experts: found 8; expected what num_experts says"),
        ({"num_nextn_predict_layers": 2}, "num_nextn_predict_layers: found 2; expected 0 or 1 MTP layers"),
        (
            {"attn_output_gate": False},
            "attn_output_gate: found false; expected true: the query projection holds a gate for each head",
        ),
        ({"head_dim": GONE}, "head_dim: found missing; expected a positive integer"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
