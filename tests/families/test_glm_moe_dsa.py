from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from modelbones.families.registry import build, preset, read_config
from modelbones.skeleton import Layer
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("glm-5.2")
INDEXED = (0, 1, 2, *range(6, 75, 4))
"""The 21 layers of GLM-5.2 that run an indexer; all others use an earlier selection."""
ALL_FULL = edited(CONFIG, {"indexer_types": GONE, "index_topk_freq": GONE, "index_skip_topk_offset": GONE})
"""GLM-5 and GLM-5.1, whose configs have none of the three keys."""


def _indexed(config: dict[str, Any]) -> tuple[int, ...]:
    return tuple(layer.index for layer in build(read_config(config)).layers if layer.indexer_from == layer.index)


def _layer(index: int) -> Layer:
    return build(read_config(CONFIG)).layers[index]


def test_glm_5_2_runs_an_indexer_on_21_layers() -> None:
    assert _indexed(CONFIG) == INDEXED
    assert len(INDEXED) == 21


def test_tensors_and_state_of_an_indexer_are_on_those_layers_only() -> None:
    patterns = build(read_config(CONFIG)).patterns
    key = next(p for p in patterns if p.name.endswith("self_attn.indexer.wk.weight"))
    assert key.layers == INDEXED
    assert [buffer.name for buffer in _layer(3).buffers] == ["latent", "rope_key"]
    assert (_layer(3).indexer_from, _layer(9).indexer_from, _layer(77).indexer_from) == (2, 6, 74)


def test_the_mtp_layer_runs_one_too() -> None:
    skeleton = build(read_config(CONFIG))
    assert skeleton.mtp is not None
    assert (skeleton.mtp.index, skeleton.mtp.indexer_from) == (78, 78)


def test_a_token_of_glm_5_2_costs_95_232_bytes_and_one_of_glm_5_109_824() -> None:
    budget = build(read_config(CONFIG)).budget()
    assert (budget.fixed(), budget.per_token()) == (0, 78 * (512 + 64) * 2 + 21 * 128 * 2)
    assert budget.per_token() == 95_232
    assert budget.for_sequence(131_072) == 95_232 * 131_072 == 12_482_248_704
    full = build(read_config(ALL_FULL)).budget()
    assert (full.fixed(), full.per_token()) == (0, 78 * (512 + 64 + 128) * 2)
    assert full.per_token() == 109_824


@pytest.mark.parametrize(
    "spelling",
    [
        {"indexer_types": CONFIG["indexer_types"]},
        {"index_topk_pattern": "".join("F" if index in INDEXED else "S" for index in range(78))},
        {"index_topk_pattern": CONFIG["indexer_types"]},
        {"index_topk_freq": 4, "index_skip_topk_offset": 3},
    ],
)
def test_each_spelling_of_the_shared_indexers_says_the_same(spelling: dict[str, Any]) -> None:
    assert _indexed({**ALL_FULL, **spelling}) == INDEXED


def test_none_of_the_spellings_means_that_all_run_one() -> None:
    config = read_config(ALL_FULL)
    assert [item.path for item in config.declared.assumed] == ["indexer_types"]
    assert _indexed(ALL_FULL) == tuple(range(78))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {"index_topk_freq": 2},
            # Every even layer from 4 against every fourth from 6: 4, 8, ..., 76 differ, 19 of them.
            "index_topk_freq: found layers 4, 8, 12, 16, 20, 24 and 13 more; expected what indexer_types says",
        ),
        (
            {"indexer_types": ["shared"] + ["full"] * 77, "index_topk_freq": GONE},
            "indexer_types: found shared on layer 0; "
            "expected full on the first sparse layer: there is no earlier selection to share",
        ),
        ({"indexer_types": ["full"] * 77}, "indexer_types: found a list of 77; expected a list of 78 words"),
        (
            {"index_topk_pattern": "F" * 77},
            f'index_topk_pattern: found "{"F" * 55} ...; expected 78 letters F or S',
        ),
        (
            {"mlp_layer_types": ["dense"] * 4 + ["sparse"] * 74},
            "mlp_layer_types: found layer 3; expected dense on the first 3 layers only, as first_k_dense_replace says",
        ),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
