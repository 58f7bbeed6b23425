from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.buffers import Home
from modelbones.errors import ConfigError, UnknownArchitectureError, UsageError
from modelbones.families.glm5_next import Glm5NextTextSkeleton
from modelbones.families.registry import build, read_config
from modelbones.parts.part import StateKind
from modelbones.skeleton import Final, FinalStep, Layer, Mixer, Mlp, ResidualStep, Site, Step
from modelbones.tensors import Group, Role
from tests.published import GONE, RECURRENT, SPARSE, edited, flat, in_text, nested

KDA_ATTN = [
    "q_proj.weight",
    "k_proj.weight",
    "v_proj.weight",
    "b_proj.weight",
    "f_a_proj.weight",
    "f_b_proj.weight",
    "g_a_proj.weight",
    "g_b_proj.weight",
    "q_conv1d.weight",
    "k_conv1d.weight",
    "v_conv1d.weight",
    "A_log",
    "dt_bias",
    "o_norm.weight",
    "o_proj.weight",
]
MLA = [
    "q_a_proj.weight",
    "q_a_layernorm.weight",
    "q_b_proj.weight",
    "kv_a_proj_with_mqa.weight",
    "kv_a_layernorm.weight",
    "kv_b_proj.weight",
    "o_proj.weight",
]
INDEXER = [
    "indexer.wq_b.weight",
    "indexer.wk.weight",
    "indexer.k_norm.weight",
    "indexer.k_norm.bias",
    "indexer.weights_proj.weight",
    "indexer.index_kpool_compress_ape",
    "indexer.index_kpool_compress_gate",
]
NORMS = ["input_layernorm.weight", "post_attention_layernorm.weight"]
HC = ["hc_attn_fn", "hc_attn_base", "hc_attn_scale", "hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale"]
MTP_HEAD = ["eh_proj.weight", "enorm.weight", "hnorm.weight", "shared_head.norm.weight"]
OUTSIDE = {"model.language_model.embed_tokens.weight", "model.language_model.norm.weight", "lm_head.weight"}


def _built(**edits: Any) -> Glm5NextTextSkeleton:
    return Glm5NextTextSkeleton.from_config(edited(nested(), in_text(edits)))


def _names(index: int, *leaves: list[str]) -> tuple[str, ...]:
    return tuple(f"model.language_model.layers.{index}.{leaf}" for group in leaves for leaf in group)


def _attn(leaves: list[str]) -> list[str]:
    return [f"self_attn.{leaf}" for leaf in leaves]


SKELETON = Glm5NextTextSkeleton.from_config(nested())


def test_45_layers_of_which_34_are_kda_and_every_fourth_is_sparse() -> None:
    assert [layer.index for layer in SKELETON.layers] == list(range(45))
    assert len(RECURRENT) == 34
    assert [layer.index for layer in SKELETON.layers if layer.mixer is Mixer.KDA] == RECURRENT
    assert [layer.index for layer in SKELETON.layers if layer.mixer is Mixer.DSA] == SPARSE
    assert SPARSE == [3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43]
    assert all(layer.hyper_connection and not layer.is_mtp for layer in SKELETON.layers)


def test_the_first_three_layers_are_dense_and_the_rest_routed() -> None:
    assert [layer.mlp for layer in SKELETON.layers] == [Mlp.DENSE] * 3 + [Mlp.ROUTED_MOE] * 42


def test_the_mtp_layer_stands_past_the_stack_and_apart_from_it() -> None:
    mtp = SKELETON.mtp
    assert mtp is not None
    assert (mtp.index, mtp.mixer, mtp.mlp) == (45, Mixer.DSA, Mlp.ROUTED_MOE)
    assert (mtp.hyper_connection, mtp.is_mtp) == (False, True)
    assert SKELETON.all_layers() == (*SKELETON.layers, mtp)


def test_the_sizes_the_seeds_keep() -> None:
    assert (SKELETON.hidden_size, SKELETON.hc_mult) == (4096, 4)


HYPER_CONNECTED = (
    ResidualStep(Step.SAVE_RESIDUAL),
    ResidualStep(Step.HC_PRE, site=Site.ATTN),
    ResidualStep(Step.NORM, weight="input_layernorm.weight"),
    ResidualStep(Step.MIXER),
    ResidualStep(Step.HC_POST, site=Site.ATTN),
    ResidualStep(Step.SAVE_RESIDUAL),
    ResidualStep(Step.HC_PRE, site=Site.FFN),
    ResidualStep(Step.NORM, weight="post_attention_layernorm.weight"),
    ResidualStep(Step.MLP),
    ResidualStep(Step.HC_POST, site=Site.FFN),
)
PRE_NORM = (
    ResidualStep(Step.SAVE_RESIDUAL),
    ResidualStep(Step.NORM, weight="input_layernorm.weight"),
    ResidualStep(Step.MIXER),
    ResidualStep(Step.SAVE_RESIDUAL),
    ResidualStep(Step.NORM, weight="post_attention_layernorm.weight"),
    ResidualStep(Step.MLP),
)


def test_every_text_layer_takes_10_steps_and_the_mtp_layer_6() -> None:
    assert len(HYPER_CONNECTED) == 10
    assert len(PRE_NORM) == 6
    assert all(SKELETON.residual_plan(layer) == HYPER_CONNECTED for layer in SKELETON.layers)
    assert SKELETON.mtp is not None
    assert SKELETON.residual_plan(SKELETON.mtp) == PRE_NORM


def test_three_steps_follow_the_last_layer() -> None:
    assert SKELETON.final_plan() == (
        FinalStep(Final.HYPER_HEAD_MEAN),
        FinalStep(Final.NORM, weight="model.language_model.norm.weight"),
        FinalStep(Final.LM_HEAD),
    )


def test_34_layers_carry_recurrent_state_and_12_hold_paged_kv() -> None:
    plan = SKELETON.state_plan()
    assert list(plan) == list(range(46))
    assert SKELETON.kda_state_layers() == tuple(RECURRENT)
    assert SKELETON.kv_cache_layers() == (*SPARSE, 45)
    assert len(SKELETON.kda_state_layers()) == 34
    assert len(SKELETON.kv_cache_layers()) == 12
    assert all(plan[index] is StateKind.KDA_RECURRENT for index in RECURRENT)
    assert all(plan[index] is StateKind.SPARSE_KV for index in (*SPARSE, 45))


def test_the_structural_names_of_a_layer_are_the_seeds_in_its_order() -> None:
    for layer in SKELETON.layers:
        attn = KDA_ATTN if layer.mixer is Mixer.KDA else MLA + INDEXER
        names = SKELETON.structural_tensors(layer)
        assert names == _names(layer.index, _attn(attn), NORMS, HC)
        assert len(names) == (23 if layer.mixer is Mixer.KDA else 22)
    assert SKELETON.mtp is not None
    names = SKELETON.structural_tensors(SKELETON.mtp)
    assert names == _names(45, _attn(MLA + INDEXER), NORMS, MTP_HEAD)
    assert len(names) == 20


def test_1047_names_are_structural_270_of_them_hyper_connections() -> None:
    names = SKELETON.structural_tensor_set()
    assert len(names) == 34 * 23 + 11 * 22 + 20 + 3 == 1_047
    assert names >= OUTSIDE
    hyper = {name for name in names if ".hc_" in name}
    assert len(hyper) == 45 * 6 == 270
    assert not any(".layers.45." in name for name in hyper)
    assert {name for name in names if name.endswith(".bias")} == {
        f"model.language_model.layers.{index}.self_attn.indexer.k_norm.bias" for index in (*SPARSE, 45)
    }
    from_layers = {name for layer in SKELETON.all_layers() for name in SKELETON.structural_tensors(layer)}
    assert names == from_layers | OUTSIDE


EXPERT = "model.language_model.layers.9.mlp.experts.287.up_proj.weight"


def test_the_release_accounts_for_everything_structural() -> None:
    names = {name for pattern in SKELETON.patterns if pattern.required for name in pattern.names()}
    assert len(names) == 38_770
    found = SKELETON.account(names)
    assert found.is_complete()
    assert (found.required, found.bound) == (1_047, 1_047)
    assert found.deferred == 38_770 - 1_047 == 37_723
    assert EXPERT in names


def test_a_missing_bias_a_strange_name_and_an_expert_are_told_apart() -> None:
    names = SKELETON.structural_tensor_set()
    gone, strange = (
        "model.language_model.layers.3.self_attn.indexer.k_norm.bias",
        "model.language_model.layers.9.self_attn.wat",
    )
    without = SKELETON.account(names - {gone})
    assert without.missing == (gone,)
    assert (without.bound, without.unexpected, without.deferred) == (1_046, (), 0)
    assert not without.is_complete()
    with_strange = SKELETON.account(names | {strange})
    assert with_strange.unexpected == (strange,)
    assert (with_strange.bound, with_strange.missing) == (1_047, ())
    assert not with_strange.is_complete()
    with_expert = SKELETON.account([*names, EXPERT])
    assert with_expert.deferred == 1
    assert with_expert.is_complete()


@given(st.sets(st.sampled_from(sorted(SKELETON.structural_tensor_set())), max_size=5))
def test_exactly_what_is_taken_out_is_missed(taken: set[str]) -> None:
    found = SKELETON.account(SKELETON.structural_tensor_set() - taken)
    assert found.missing == tuple(sorted(taken))
    assert found.bound == 1_047 - len(taken)


# Shared indexers.


def _sharing(*shared: int) -> Glm5NextTextSkeleton:
    return _built(indexer_types=["shared" if index in shared else "full" for index in range(45)])


def test_a_shared_indexer_has_no_tensors_no_rows_and_an_earlier_source() -> None:
    skeleton = _sharing(7, 11, 19)
    sources = {layer.index: layer.indexer_from for layer in skeleton.layers if layer.mixer is Mixer.DSA}
    assert sources == {3: 3, 7: 3, 11: 3, 15: 15, 19: 15, **{index: index for index in SPARSE[5:]}}
    for layer in skeleton.layers:
        if layer.index in (7, 11, 19):
            assert skeleton.structural_tensors(layer) == _names(layer.index, _attn(MLA), NORMS, HC)
            assert [buffer.name for buffer in layer.buffers] == ["latent"]
            assert layer.states == (StateKind.SPARSE_KV,)
        elif layer.mixer is Mixer.DSA:
            assert layer == SKELETON.layers[layer.index]


def test_three_shared_indexers_cost_three_times_less_of_everything_of_theirs() -> None:
    skeleton = _sharing(7, 11, 19)
    assert len(skeleton.structural_tensor_set()) == 1_047 - 3 * 7
    budget = skeleton.budget()
    assert budget.dsa_indexer_per_token == (11 - 3) * 513
    assert budget.dsa_kv_per_token == 11_264
    assert len(skeleton.kv_cache_layers()) == 12


def test_the_mtp_layer_runs_an_indexer_of_its_own_whatever_the_stack_shares() -> None:
    skeleton = _sharing(*SPARSE[1:])
    assert skeleton.mtp == SKELETON.mtp
    assert skeleton.mtp is not None
    assert skeleton.mtp.indexer_from == 45


def test_a_kda_layer_has_no_indexer_even_where_the_words_say_shared() -> None:
    assert _sharing(0, 1, 2, 44) == SKELETON
    assert all(layer.indexer_from is None for layer in SKELETON.layers if layer.mixer is Mixer.KDA)


@given(st.data())
def test_a_sharing_layer_uses_the_last_full_one_before_it(data: st.DataObject) -> None:
    full = [True, *data.draw(st.lists(st.booleans(), min_size=10, max_size=10))]
    skeleton = _sharing(*(index for index, runs in zip(SPARSE, full, strict=True) if not runs))
    last = None
    for index, runs in zip(SPARSE, full, strict=True):
        last = index if runs else last
        assert skeleton.layers[index].indexer_from == last


# Other members of the family.


def test_a_tied_head_is_no_tensor_of_its_own() -> None:
    tied = Glm5NextTextSkeleton.from_config(
        edited(nested(), {"tie_word_embeddings": True, "text_config.tie_word_embeddings": True})
    )
    assert SKELETON.structural_tensor_set() - tied.structural_tensor_set() == {"lm_head.weight"}
    assert {p.role for p in SKELETON.patterns} - {p.role for p in tied.patterns} == {Role.LM_HEAD}


def test_a_text_only_config_has_no_tower() -> None:
    skeleton = Glm5NextTextSkeleton.from_config(edited(nested(), {"vision_config": GONE}))
    assert skeleton.tower == ()
    assert {pattern.group for pattern in skeleton.patterns} == {Group.TRUNK, Group.MTP}
    assert skeleton.structural_tensor_set() == SKELETON.structural_tensor_set()


@pytest.mark.parametrize("value", [0, None, GONE])
def test_without_an_mtp_layer_its_20_names_are_gone(value: Any) -> None:
    skeleton = _built(num_nextn_predict_layers=value)
    assert skeleton.mtp is None
    assert skeleton.all_layers() == skeleton.layers == SKELETON.layers
    assert len(skeleton.structural_tensor_set()) == 1_027
    assert skeleton.kv_cache_layers() == tuple(SPARSE)
    assert not any(pattern.group is Group.MTP for pattern in skeleton.patterns)


def test_attention_bias_adds_three_biases_a_sparse_layer() -> None:
    skeleton = _built(attention_bias=True)
    added = skeleton.structural_tensor_set() - SKELETON.structural_tensor_set()
    assert added == {
        f"model.language_model.layers.{index}.self_attn.{leaf}.bias"
        for index in (*SPARSE, 45)
        for leaf in ("q_a_proj", "kv_a_proj_with_mqa", "o_proj")
    }


def test_no_shared_experts_have_no_tensors() -> None:
    skeleton = _built(n_shared_experts=0)
    roles = {pattern.role for pattern in skeleton.patterns}
    assert {p.role for p in SKELETON.patterns} - roles == {Role.SHARED_EXPERTS}


def test_two_shared_experts_are_fused_into_one_of_twice_the_width() -> None:
    shapes = {p.name.rsplit(".", 2)[1]: p.shape for p in _built(n_shared_experts=2).patterns if "shared_exp" in p.name}
    assert shapes == {"gate_proj": (4096, 4096), "up_proj": (4096, 4096), "down_proj": (4096, 4096)}


def test_every_mtp_tensor_but_two_copies_is_required() -> None:
    optional = [pattern.name for pattern in SKELETON.patterns if not pattern.required]
    stem = "model.language_model.layers.{layer}."
    assert optional == [f"{stem}embed_tokens.weight", f"{stem}shared_head.head.weight"]


def test_what_is_kept_is_recurrent_slots_pages_and_the_sequences_own_rows() -> None:
    def homes(layer: Layer) -> dict[str, Home]:
        return {buffer.name: buffer.home for buffer in layer.buffers}

    assert homes(SKELETON.layers[0]) == {"recurrent": Home.SLOT, "conv": Home.SLOT}
    rows = {"indexer.k_normed": Home.OWNED, "indexer.gate": Home.OWNED, "indexer.valid": Home.OWNED}
    assert homes(SKELETON.layers[3]) == {"latent": Home.PAGED, **rows}
    assert SKELETON.mtp is not None
    proposer = {f"proposer.{name}": Home.OWNED for name in ("concat", "x", "logits", "arg", "head_xchg")}
    assert homes(SKELETON.mtp) == {"latent": Home.PAGED, **rows, **proposer}


# The doors.


def test_a_skeleton_comes_from_a_raw_or_a_typed_config() -> None:
    typed = read_config(nested())
    assert build(typed) == Glm5NextTextSkeleton.from_config(typed) == SKELETON  # type: ignore[arg-type]
    assert Glm5NextTextSkeleton.from_config("glm-5.3-flash") == SKELETON  # type: ignore[arg-type]
    assert isinstance(build(typed), Glm5NextTextSkeleton)


def test_a_refused_config_has_no_skeleton() -> None:
    with pytest.raises(ConfigError):
        Glm5NextTextSkeleton.from_config({**flat(), "hc_mult": 0})
    with pytest.raises(UnknownArchitectureError):
        Glm5NextTextSkeleton.from_config({**flat(), "model_type": "glm5_nxt"})


def test_skeletons_are_equal_by_value_whatever_was_asked_of_them() -> None:
    one, other = Glm5NextTextSkeleton.from_config(nested()), Glm5NextTextSkeleton.from_config(nested())
    assert one.patterns
    assert one == other
    assert _built(kv_lora_rank=256) != one


def test_the_state_budget_is_for_the_config_the_skeleton_was_built_from() -> None:
    typed = read_config(nested())
    assert SKELETON.state_budget(typed, 2) == SKELETON.budget(2)  # type: ignore[arg-type]
    assert SKELETON.state_budget() == SKELETON.budget()
    other = read_config(edited(nested(), in_text({"kv_lora_rank": 256})))
    with pytest.raises(UsageError) as error:
        SKELETON.state_budget(other, 2)  # type: ignore[arg-type]
    assert str(error.value) == (
        "state_budget: found a config of another skeleton; expected the one this was built from; "
        "build a skeleton from that config"
    )


@given(
    layers=st.integers(1, 12),
    dense=st.integers(0, 12),
    data=st.data(),
)
def test_the_name_count_follows_the_layer_map(layers: int, dense: int, data: st.DataObject) -> None:
    sparse = data.draw(st.lists(st.booleans(), min_size=layers, max_size=layers))
    skeleton = Glm5NextTextSkeleton.from_config(
        edited(
            flat(),
            {
                "num_hidden_layers": layers,
                "layer_types": ["full_attention" if is_sparse else "linear_attention" for is_sparse in sparse],
                "linear_attn_config.kda_layers": GONE,
                "linear_attn_config.full_attn_layers": GONE,
                "indexer_types": GONE,
                "mlp_layer_types": GONE,
                "first_k_dense_replace": min(dense, layers),
            },
        )
    )
    num_sparse = sum(sparse)
    assert len(skeleton.structural_tensor_set()) == (layers - num_sparse) * 23 + num_sparse * 22 + 20 + 3
    assert skeleton.mtp is not None
    assert skeleton.mtp.index == layers
    assert skeleton.budget().per_token() == num_sparse * (1024 + 513)
    assert skeleton.budget().kda_recurrent == (layers - num_sparse) * 64 * 128 * 128 * 4
