from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from modelbones.families.registry import build, preset, read_config
from modelbones.parts.part import StateKind
from modelbones.skeleton import Mixer, Mlp
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("kimi-linear-48b")
LINEAR = "linear_attn_config"


def _edited(**edits: Any) -> dict[str, Any]:
    return edited(CONFIG, edits)


def test_the_lists_number_layers_from_1_and_names_from_0() -> None:
    skeleton = build(read_config(CONFIG))
    attending = [layer.index for layer in skeleton.layers if layer.mixer is Mixer.MLA]
    assert attending == [3, 7, 11, 15, 19, 23, 26]  # 4, 8, 12, 16, 20, 24 and 27 in the config
    assert len(skeleton.kda_state_layers()) == 20
    assert skeleton.kv_cache_layers() == tuple(attending)
    assert [layer.index for layer in skeleton.layers if layer.mlp is Mlp.DENSE] == [0]


def test_the_48b_keeps_43_417_600_bytes_a_sequence_and_8_064_a_token() -> None:
    budget = build(read_config(CONFIG)).budget()
    # 20 layers of 32 heads x 128 x 128 fp32; 20 of 3 kernel rows x 3 x 4,096 channels bf16.
    assert budget.kda_recurrent == 20 * 32 * 128 * 128 * 4 == 41_943_040
    assert budget.kda_conv == 20 * 3 * 3 * 4_096 * 2 == 1_474_560
    assert budget.fixed() == 41_943_040 + 1_474_560 == 43_417_600
    # 7 layers of a 512-wide latent and a 64-wide rotary key, bf16.
    assert budget.per_token() == 7 * (512 + 64) * 2 == 8_064
    assert budget.for_sequence(131_072) == 43_417_600 + 8_064 * 131_072 == 1_100_382_208


def test_no_state_of_a_kda_layer_is_in_the_pages() -> None:
    layer = build(read_config(CONFIG)).layers[0]
    assert layer.states == (StateKind.KDA_RECURRENT,)
    assert [buffer.home.value for buffer in layer.buffers] == ["slot", "slot"]


def test_dense_layers_are_called_mlp_and_routed_ones_block_sparse_moe() -> None:
    names = {name for pattern in build(read_config(CONFIG)).patterns for name in pattern.names()}
    assert len(names) == 20_493  # what transformers 5.23 saves
    assert "model.layers.0.mlp.gate_proj.weight" in names
    assert "model.layers.1.block_sparse_moe.experts.255.w2.weight" in names
    assert "model.layers.1.block_sparse_moe.shared_experts.up_proj.weight" in names
    assert not any(".mlp." in name for name in names if not name.startswith("model.layers.0."))


def test_the_decay_is_stored_with_four_dimensions() -> None:
    patterns = build(read_config(CONFIG)).patterns
    (decay,) = [pattern for pattern in patterns if pattern.name.endswith("A_log")]
    assert decay.shape == (1, 1, 32, 1)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {f"{LINEAR}.kda_layers": list(range(26))},
            "linear_attn_config.kda_layers[0]: found 0; expected a layer index from 1 to 27, each once",
        ),
        (
            {f"{LINEAR}.full_attn_layers": [4, 8, 12, 16, 20, 24, 26]},
            "linear_attn_config.full_attn_layers: found layer 26; "
            "expected no layer that linear_attn_config.kda_layers names too",
        ),
        (
            {"layer_types": ["linear_attention"] * 27},
            "linear_attn_config.full_attn_layers: found layers 4, 8, 12, 16, 20, 24 and 1 more; "
            "expected the layers that layer_types calls so",
        ),
        (
            {"q_lora_rank": GONE},
            "q_lora_rank: found missing; expected a positive integer, or null where one matrix makes the query",
        ),
        (
            {"num_experts_per_token": 257},
            "num_experts_per_token: found 257; expected at most num_experts, 256",
        ),
        (
            {"n_shared_experts": 2},
            "n_shared_experts: found 2; expected what num_shared_experts says",
        ),
        (
            {"attn_res_block_size": 12},
            "attn_res_block_size: found 12; "
            "expected no such key: it belongs to Kimi-K3, whose text model has this model_type too",
        ),
        (
            {"mla_use_output_gate": True},
            "mla_use_output_gate: found true; expected false: the latent attention has no output gate",
        ),
        (
            {f"{LINEAR}.use_full_rank_gate": True},
            "linear_attn_config.use_full_rank_gate: found true; expected false: the gate of KDA has a low rank",
        ),
        (
            {"num_nextn_predict_layers": 1},
            "num_nextn_predict_layers: found 1; expected 0: no release has an MTP layer",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert expected in faults(_edited(**edits))


def test_transformers_own_spelling_of_the_layers_and_heads_reads_the_same() -> None:
    words = ["full_attention" if index in {3, 7, 11, 15, 19, 23, 26} else "linear_attention" for index in range(27)]
    flat = _edited(
        linear_attn_config=GONE, layer_types=words, linear_num_heads=32, linear_head_dim=128, linear_conv_kernel_dim=4
    )
    assert build(read_config(flat)).patterns == build(read_config(CONFIG)).patterns


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
