"""The seeds' engine: slots, a spare one, a reserve at full context, pages; equal to the budget's own folds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.engines.metrale import MetraleServer
from modelbones.errors import UsageError
from modelbones.plan.capacity import capacity_of
from modelbones.reserve import per_sequence_state_bytes
from modelbones.skeleton import Skeleton
from tests.plan.asking import asked, skeleton
from tests.published import nested

M = 1_048_576
SLOT = 34 * (64 * 128 * 128 * 4 + 24_576 * 3 * 2)
"""34 KDA layers: recurrence in fp32, a conv window of kernel - 1 = 3 rows of bf16."""
PROPOSER = 2 * (3 * 4096 + 154_880) + 4 + 16
"""Three hidden rows and one of logits in bf16, the position and the cursor."""


def server(model: Skeleton | None = None, ranks: int = 1, num_spec: int = 0, spec_on: bool = False) -> MetraleServer:
    return MetraleServer(skeleton=model or skeleton(), ranks=ranks, num_spec=num_spec, spec_on=spec_on)


def test_a_slot_is_the_fixed_state_of_one_sequence() -> None:
    assert server().slot_bytes == SLOT == 147_619_840
    assert server(num_spec=3).slot_bytes == SLOT + 34 * 24_576 * 3 * 2


@pytest.mark.parametrize("context", [4096, 32_768, 131_072, 262_144, M])
def test_a_sequence_is_a_slot_and_16_907_bytes_a_token(context: int) -> None:
    """11 layers of 512 bf16 latents and of 513 bytes of indexer."""
    assert 11 * (1024 + 513) == 16_907
    assert server().sequence_bytes(context) == 147_619_840 + 16_907 * context


@pytest.mark.parametrize(("context", "rows"), [(0, 0), (3, 0), (4, 4), (4099, 4096), (M - 1, M - 4)])
def test_the_reserve_is_whole_pools_of_the_longest_context(context: int, rows: int) -> None:
    """A pool is 4 tokens; the latent is paged by each token a sequence has."""
    assert server().owned_bytes(context) == 11 * 513 * rows
    assert server().page_bytes(context) == 11 * 1024 * context


def test_drafting_adds_the_mtp_layers_rows_and_its_proposer() -> None:
    plain, drafting = server(), server(num_spec=1, spec_on=True)
    assert drafting.owned_bytes(M) - plain.owned_bytes(M) == 513 * M + PROPOSER
    assert drafting.page_bytes(M) - plain.page_bytes(M) == 1024 * M


@given(st.integers(0, M), st.integers(0, 4), st.booleans())
def test_nothing_is_summed_a_second_time(context: int, num_spec: int, spec_on: bool) -> None:
    """Against the seeds' own reserve and the budget of the same skeleton."""
    one, budget = server(num_spec=num_spec, spec_on=spec_on), skeleton().budget(num_spec)
    assert one.owned_bytes(context) == per_sequence_state_bytes(nested(), context, spec_on).total()
    assert one.slot_bytes == budget.fixed()
    latents = 1 if spec_on else 0
    assert one.page_bytes(context) * 11 == budget.dsa_kv_per_token * context * (11 + latents)
    if not spec_on and context % 4 == 0:
        assert one.sequence_bytes(context) == budget.for_sequence(context)


@pytest.mark.parametrize(
    ("ranks", "heads", "latent"), [(1, 64, 512), (2, 32, 256), (3, 22, 171), (8, 8, 64), (64, 1, 8), (100, 1, 6)]
)
def test_heads_and_latent_divide_and_the_indexer_stays_whole(ranks: int, heads: int, latent: int) -> None:
    """64 heads on 3 ranks: the widest holds 22; 512 elements: 171."""
    shared = server(ranks=ranks)
    assert shared.slot_bytes == 34 * heads * (128 * 128 * 4 + 3 * 128 * 3 * 2)
    assert shared.page_bytes(4096) == 11 * latent * 2 * 4096
    assert shared.owned_bytes(4096) == 11 * 513 * 4096
    share = skeleton().budget().per_rank(ranks)
    assert shared.slot_bytes == share.fixed()
    assert shared.sequence_bytes(4096) == share.for_sequence(4096)


@given(st.integers(0, 300_000), st.integers(1, 64), st.sampled_from([1, 2, 4, 8]))
def test_a_batch_is_its_sequences_and_one_spare_slot(context: int, sequences: int, ranks: int) -> None:
    shared = server(ranks=ranks)
    parts = shared.parts(context=context, sequences=sequences)
    assert list(parts) == ["state.slots", "state.scratch_slot", "state.reserve", "state.pages"]
    assert sum(parts.values()) == shared.slot_bytes + sequences * shared.sequence_bytes(context)


def test_memory_holds_the_spare_slot_before_any_sequence() -> None:
    """Two sequences of 131,072 tokens: 3 slots and 2 x 2,216,034,304 bytes; one byte less holds one."""
    need = 3 * SLOT + 2 * 16_907 * 131_072
    for memory, most in ((need, 2), (need - 1, 1), (SLOT, 0), (0, 0)):
        capacity = capacity_of(asked(engine="metrale", context=131_072), skeleton(), memory)
        assert capacity.max_sequences(131_072) == most


def test_plain_keys_and_values_are_pages_shared_by_heads() -> None:
    """Llama-3.1-8B: 32 layers, 8 heads of 128, key and value; no slot, nothing reserved."""
    one = server(skeleton("llama-3.1-8b"), ranks=2)
    assert (one.slot_bytes, one.owned_bytes(4096)) == (0, 0)
    assert one.page_bytes(4096) == 4096 * 32 * 2 * 4 * 128 * 2


def test_a_server_without_ranks_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        server(ranks=0)
    assert str(refused.value) == "metrale: ranks: found 0; expected at least 1; name a real rank count"
