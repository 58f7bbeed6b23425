from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from modelbones.buffers import Home
from modelbones.families.registry import build, preset, read_config
from modelbones.parts.part import StateKind
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("deepseek-v3.2")


def test_a_token_costs_a_latent_a_rotary_key_and_an_index_key_on_61_layers() -> None:
    budget = build(read_config(CONFIG)).budget()
    assert budget.fixed() == 0
    assert budget.dsa_kv_per_token == 61 * (512 + 64) * 2 == 70_272
    assert budget.dsa_indexer_per_token == 61 * 128 * 2 == 15_616
    assert budget.per_token() == 70_272 + 15_616 == 85_888


def test_all_of_its_state_is_in_the_pages() -> None:
    layer = build(read_config(CONFIG)).layers[0]
    assert layer.states == (StateKind.SPARSE_KV,)
    assert {buffer.home for buffer in layer.buffers} == {Home.PAGED}
    assert [buffer.name for buffer in layer.buffers] == ["latent", "rope_key", "indexer.key"]


def test_an_indexer_has_five_tensors() -> None:
    patterns = build(read_config(CONFIG)).patterns
    stem = "model.layers.{layer}.self_attn.indexer."
    shapes = {p.name.removeprefix(stem): p.shape for p in patterns if p.name.startswith(stem)}
    assert shapes == {
        "wq_b.weight": (64 * 128, 1536),
        "wk.weight": (128, 7168),
        "k_norm.weight": (128,),
        "k_norm.bias": (128,),
        "weights_proj.weight": (64, 7168),
    }


def test_the_mtp_layer_runs_an_indexer_of_its_own() -> None:
    mtp = build(read_config(CONFIG)).mtp
    assert mtp is not None
    assert mtp.indexer_from == mtp.index == 61


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"q_lora_rank": None}, "q_lora_rank: found missing; expected a positive integer"),
        ({"index_head_dim": GONE}, "index_head_dim: found missing; expected a positive integer"),
        ({"index_topk": 0}, "index_topk: found 0; expected a positive integer"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
