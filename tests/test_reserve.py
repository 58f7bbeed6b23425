from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.errors import ConfigError, UsageError
from modelbones.families.registry import build, read_config
from modelbones.parts.indexer import dsa_capacity, indexer_state_bytes, max_dsa_context
from modelbones.reserve import (
    PerSequenceState,
    device_parts,
    kept_outside_pages,
    per_sequence_state_bytes,
    reserve,
    uncounted,
)
from tests.published import GONE, SPARSE, edited, flat, in_text, nested

CONTEXT = 131_072
ROW = 4 * 128 + 1
"""Bytes of an indexer row: key and gate of 128 bf16, one validity byte."""
PER_LAYER = 67_239_936
PROPOSER = 334_356
SKELETON = build(read_config(nested()))


def test_the_reserve_of_the_published_model_at_131072_tokens() -> None:
    assert PER_LAYER == CONTEXT * ROW
    # concat 2 x 4096 bf16, x 4096 bf16, logits of 154,880 bf16, one u32, 16 bytes to exchange.
    assert PROPOSER == 2 * 4096 * 2 + 4096 * 2 + 154_880 * 2 + 4 + 16
    state = per_sequence_state_bytes(nested(), CONTEXT, True)
    assert state.target_layers == 11 * PER_LAYER == 739_639_296
    assert state.proposer == PER_LAYER + PROPOSER == 67_574_292
    assert state.total() == 807_213_588
    assert state.for_batch(3) == 2_421_640_764
    assert state.for_batch(0) == state.for_batch(1) == 807_213_588


def test_the_reserve_at_the_longest_context() -> None:
    # 11 x 513 x 1,048,576.
    assert per_sequence_state_bytes(nested(), 1_048_576, False).target_layers == 5_917_114_368


def test_without_speculation_or_without_an_mtp_layer_the_proposer_owns_nothing() -> None:
    assert per_sequence_state_bytes(nested(), CONTEXT, False) == PerSequenceState(target_layers=739_639_296)
    without = edited(nested(), in_text({"num_nextn_predict_layers": 0}))
    assert per_sequence_state_bytes(without, CONTEXT, True) == PerSequenceState(target_layers=739_639_296)


def test_a_state_is_zero_by_default_and_equal_by_value() -> None:
    assert PerSequenceState() == PerSequenceState(target_layers=0, proposer=0)
    assert PerSequenceState(target_layers=1) != PerSequenceState(proposer=1)
    assert PerSequenceState().total() == PerSequenceState().for_batch(7) == 0
    assert len({PerSequenceState(), PerSequenceState()}) == 1


def test_a_negative_batch_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        PerSequenceState().for_batch(-1)
    assert str(error.value) == "batch: found -1; expected 0 or more; name the sequences served at once"


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 1000))
def test_a_batch_is_so_many_totals_and_none_counts_as_one(target: int, proposer: int, sequences: int) -> None:
    state = PerSequenceState(target_layers=target, proposer=proposer)
    assert state.for_batch(sequences) == (target + proposer) * max(1, sequences)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model_type": None},
        {"model_type": "llama"},
        {"model_type": "glm5_nextt", "hc_mult": 0, "text_config": 7},
        {"model_type": "glm5_next_vision"},
        {"model_type": "llama", "layer_types": object()},
        {"model_type": ["glm5_next"]},
        {"model_type": {"glm5_next": 1}},
        {"model_type": 5},
        {"text_config": {"model_type": "glm5_next_text"}},
    ],
)
def test_another_model_type_owns_nothing_before_anything_else_is_looked_at(config: dict[str, Any]) -> None:
    """A `model_type` that is a list ended in a TypeError."""
    assert per_sequence_state_bytes(config, -5, True) == PerSequenceState()


def test_the_text_model_type_counts_as_this_family() -> None:
    text_only = {**flat(), "model_type": "glm5_next_text"}
    assert per_sequence_state_bytes(text_only, CONTEXT, True).total() == 807_213_588


def test_a_typed_config_reserves_like_its_raw_one() -> None:
    assert per_sequence_state_bytes(read_config(nested()), 4099, True) == per_sequence_state_bytes(nested(), 4099, True)


def test_a_refused_config_of_this_family_reserves_nothing() -> None:
    with pytest.raises(ConfigError):
        per_sequence_state_bytes({"model_type": "glm5_next"}, CONTEXT, False)


@pytest.mark.parametrize("has_sparse_layers", [True, False])
def test_a_negative_context_is_refused(*, has_sparse_layers: bool) -> None:
    """A stack that owns nothing answered zeros."""
    all_kda = {
        "layer_types": ["linear_attention"] * 45,
        "linear_attn_config.kda_layers": GONE,
        "linear_attn_config.full_attn_layers": GONE,
    }
    config = nested() if has_sparse_layers else edited(nested(), in_text(all_kda))
    with pytest.raises(UsageError) as error:
        per_sequence_state_bytes(config, -1, False)
    assert str(error.value) == "tokens: found -1; expected 0 or more; a sequence cannot be shorter than empty"


def test_a_shared_indexer_owns_nothing() -> None:
    words = ["shared" if index in SPARSE[1:4] else "full" for index in range(45)]
    config = edited(nested(), in_text({"indexer_types": words}))
    assert per_sequence_state_bytes(config, CONTEXT, False).target_layers == 8 * PER_LAYER


@pytest.mark.parametrize(
    ("context", "kpool", "rows"), [(4099, 4, 4096), (3, 4, 0), (4, 4, 4), (7, 0, 7), (0, 4, 0), (0, 0, 0), (9, 1, 9)]
)
def test_capacity_is_whole_pools_rounded_down_and_a_pool_of_0_counts_as_1(context: int, kpool: int, rows: int) -> None:
    assert dsa_capacity(context, kpool) == rows


@given(st.integers(0, 10**7), st.integers(0, 64))
def test_capacity_is_the_seeds_formula(context: int, kpool: int) -> None:
    assert dsa_capacity(context, kpool) == context // max(kpool, 1) * max(kpool, 1)


@given(st.integers(0, 10**7), st.integers(0, 512))
def test_indexer_bytes_are_the_seeds_formula(capacity: int, width: int) -> None:
    assert indexer_state_bytes(capacity, width) == capacity * width * 2 + capacity * width * 2 + capacity


def test_a_context_of_16384_takes_8404992_bytes_a_layer() -> None:
    assert indexer_state_bytes(16_384, 128) == 16_384 * 513 == 8_404_992


def test_the_context_of_a_config_is_its_capacity() -> None:
    class Config:
        max_context = 4099
        index_kpool = 4

    assert max_dsa_context(Config()) == 4096


@pytest.mark.parametrize(("context", "kpool"), [(-1, 4), (4, -1)])
def test_a_negative_capacity_is_refused(context: int, kpool: int) -> None:
    with pytest.raises(UsageError) as error:
        dsa_capacity(context, kpool)
    assert str(error.value) == (
        f"dsa_capacity: found max_context {context} and index_kpool {kpool}; expected 0 or more of each; correct them"
    )
    with pytest.raises(UsageError) as error:
        indexer_state_bytes(context, kpool)
    assert str(error.value) == (
        f"indexer_state_bytes: found capacity {context} and index_head_dim {kpool}; "
        "expected 0 or more of each; correct them"
    )


@given(st.integers(0, 300_000), st.booleans(), st.integers(0, 4))
def test_the_reserve_is_the_layers_capacity(context: int, spec_on: bool, pools: int) -> None:
    kpool = 2**pools
    skeleton = build(read_config(edited(nested(), in_text({"index_kpool": kpool}))))
    owned = reserve(skeleton, context, spec_on=spec_on)
    per_layer = context // kpool * kpool * ROW
    assert owned.target_layers == 11 * per_layer
    assert owned.proposer == (per_layer + PROPOSER if spec_on else 0)


def test_the_device_line_counts_each_buffer_once() -> None:
    parts = device_parts(SKELETON, CONTEXT, num_spec=0, spec_on=False)
    assert parts == {
        "kda_recurrent": 142_606_336,
        "kda_conv": 5_013_504,
        "dsa_kv": 11_264 * CONTEXT,
        "dsa_indexer": 739_639_296,
    }
    # At whole pools budget and device line are one number; adding the reserve would count the indexer twice.
    assert sum(parts.values()) == SKELETON.budget().for_sequence(CONTEXT) == 2_363_654_144


def test_speculation_adds_the_mtp_layers_pages_and_what_the_proposer_owns() -> None:
    plain = device_parts(SKELETON, CONTEXT, num_spec=0, spec_on=False)
    parts = device_parts(SKELETON, CONTEXT, num_spec=2, spec_on=True)
    assert {name: nbytes for name, nbytes in parts.items() if plain.get(name) != nbytes} == {
        "kda_conv": 5_013_504 + 2 * 1_671_168,
        "mtp_latent": 1_024 * CONTEXT,
        # All that the proposer owns, its indexer included: what the reserve calls so.
        "proposer": PER_LAYER + PROPOSER,
    }


@given(st.integers(0, 400_000), st.integers(0, 5), st.booleans())
def test_the_device_line_is_slots_pages_and_reserve(context: int, num_spec: int, spec_on: bool) -> None:
    parts = device_parts(SKELETON, context, num_spec=num_spec, spec_on=spec_on)
    owned = reserve(SKELETON, context, spec_on=spec_on)
    budget = SKELETON.budget(num_spec)
    latents = context * (11_264 + (1_024 if spec_on else 0))
    assert sum(parts.values()) == budget.fixed() + latents + owned.total()
    assert all(nbytes >= 0 for nbytes in parts.values())


def test_what_no_sum_counts_is_named_with_its_reason() -> None:
    named = {entry.name: (entry.nbytes, entry.per) for entry in uncounted(SKELETON, num_spec=0, spec_on=True)}
    assert named == {
        "mhc_highway": (65_536, "token"),
        "moe_routing": (1_216, "token"),
        "mtp_latent": (1_024, "token"),
        # The slot pool's scratch slot: recurrent and conv of every KDA layer.
        "scratch_slot": (147_619_840, "server"),
    }
    reasons = {entry.name: entry.reason for entry in uncounted(SKELETON, num_spec=0, spec_on=False)}
    assert "only when speculating" in reasons["mtp_latent"]
    assert all(reasons.values())


def test_state_outside_the_kv_blocks_is_why_a_prefix_cache_alone_is_not_safe() -> None:
    assert kept_outside_pages(SKELETON) == ("conv", "indexer.gate", "indexer.k_normed", "indexer.valid", "recurrent")
