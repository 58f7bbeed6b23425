from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.budget import StateBudget
from modelbones.buffers import FIXED, TOKEN, Buffer, Growth, Home, Rewind, last, pool, ragged, window
from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.families.registry import build, read_config
from modelbones.ranks import Axis, split
from tests.published import edited, in_text, nested

GROWTHS = st.one_of(
    st.sampled_from([FIXED, TOKEN]),
    *(st.builds(rule, st.integers(1, 12)) for rule in (pool, window, ragged, last)),
)


def _buffer(growth: Growth, width: int = 1, *, home: Home = Home.OWNED, term: str = "state") -> Buffer:
    return Buffer(name="rows", term=term, shape=(width,), dtype=DType.U8, per=growth, home=home, rewind=Rewind.SNAPSHOT)


BUFFERS = st.lists(st.builds(_buffer, GROWTHS, st.integers(1, 50)), max_size=6)


def _published(num_spec: int = 0) -> StateBudget:
    return build(read_config(nested())).budget(num_spec)


def test_the_published_model_keeps_what_its_geometry_says() -> None:
    budget = _published()
    # 34 KDA layers x 64 heads x 128 x 128 x 4 bytes.
    assert budget.kda_recurrent == 34 * 64 * 128 * 128 * 4 == 142_606_336
    # 34 layers x (q, k, v of 64 x 128 channels = 24,576) x (4 - 1) rows x 2 bytes.
    assert budget.kda_conv == 34 * 24_576 * 3 * 2 == 5_013_504
    # 11 sparse text layers x 512 x 2 bytes.
    assert budget.dsa_kv_per_token == 11 * 512 * 2 == 11_264
    # 11 x (key 128 x 2 + gate 128 x 2 + 1 validity byte).
    assert budget.dsa_indexer_per_token == 11 * 513 == 5_643
    # 4 streams x 4,096 x 4 bytes.
    assert budget.mhc_highway_per_token == 4 * 4096 * 4 == 65_536
    # 288 fp32 logits, 8 ids and 8 weights of 4 bytes.
    assert budget.moe_routing_per_token == 288 * 4 + 8 * 8 == 1_216
    assert budget.fixed() == 142_606_336 + 5_013_504 == 147_619_840
    assert budget.per_token() == 11_264 + 5_643 == 16_907
    assert budget.for_sequence(131_072) == 147_619_840 + 131_072 * 16_907 == 2_363_654_144
    assert budget.peak(131_072) == 2_363_654_144
    assert budget.for_sequence(0) == 147_619_840


@pytest.mark.parametrize("num_spec", [1, 2, 3, 8])
def test_a_speculative_token_adds_one_conv_row_and_nothing_else(num_spec: int) -> None:
    plain, drafting = _published(), _published(num_spec)
    # 34 x 24,576 x 2 bytes a row.
    assert drafting.kda_conv == 5_013_504 + num_spec * 1_671_168
    assert drafting.kda_recurrent == plain.kda_recurrent
    assert drafting.per_token() == plain.per_token()


def test_the_mtp_layer_is_no_part_of_the_budget() -> None:
    without = build(read_config(edited(nested(), in_text({"num_nextn_predict_layers": 0})))).budget()
    assert without == _published()


def test_eight_ranks_divide_what_heads_and_the_latent_allow() -> None:
    share = _published().per_rank(8)
    # All of 64 heads and 512 elements divide by 8, so these are the seeds' own figures.
    assert share.kda_recurrent == 142_606_336 // 8 == 17_825_792
    assert share.kda_conv == 5_013_504 // 8 == 626_688
    assert share.dsa_kv_per_token == 11_264 // 8 == 1_408
    assert share.dsa_indexer_per_token == 5_643
    assert share.mhc_highway_per_token == 65_536
    assert share.moe_routing_per_token == 1_216
    assert share.for_sequence(131_072) == 17_825_792 + 626_688 + 131_072 * (1_408 + 5_643) == 942_641_152


def test_ranks_that_do_not_divide_the_heads_leave_whole_heads_on_the_widest() -> None:
    share = _published().per_rank(6)
    # ceil(64 / 6) = 11 heads; ceil(512 / 6) = 86 elements of the latent.
    assert share.kda_recurrent == 34 * 11 * 128 * 128 * 4 == 24_510_464
    assert share.kda_conv == 34 * 3 * 11 * 128 * 3 * 2 == 861_696
    assert share.dsa_kv_per_token == 11 * 86 * 2 == 1_892
    assert share.kda_recurrent > 142_606_336 / 6


@given(st.integers(1, 1024))
def test_no_ranks_share_is_short_of_its_part_and_dividing_ranks_sum_to_the_whole(ranks: int) -> None:
    whole = _published(2)
    share = whole.per_rank(ranks)
    for term in ("kda_recurrent", "kda_conv", "dsa_kv_per_token"):
        one, all_of_them = getattr(share, term), getattr(whole, term)
        assert one * ranks >= all_of_them
        units = 512 if term == "dsa_kv_per_token" else 64
        if units % ranks == 0:
            assert one * ranks == all_of_them
    for term in ("dsa_indexer_per_token", "mhc_highway_per_token", "moe_routing_per_token"):
        assert getattr(share, term) == getattr(whole, term)
    assert share.for_sequence(100) * ranks >= whole.for_sequence(100)
    assert share.for_sequence(100) <= whole.for_sequence(100)


def test_one_rank_holds_the_whole() -> None:
    whole = _published()
    assert whole.per_rank(1).for_sequence(4097) == whole.for_sequence(4097)
    assert whole.per_rank(1).peak(4097) == whole.peak(4097)
    assert whole.per_rank(4).per_rank(1).fixed() == whole.fixed()


@pytest.mark.parametrize("ranks", [0, -1])
def test_a_rank_count_below_one_is_refused(ranks: int) -> None:
    with pytest.raises(UsageError) as error:
        _published().per_rank(ranks)
    assert str(error.value) == f"ranks: found {ranks}; expected at least 1; name a real rank count"


@given(st.integers(0, 2_000_000), st.integers(0, 8), st.integers(1, 70))
def test_fixed_and_tokens_times_per_token_are_the_whole_for_this_family(tokens: int, num_spec: int, ranks: int) -> None:
    budget = _published(num_spec).per_rank(ranks)
    assert budget.for_sequence(tokens) == budget.fixed() + tokens * budget.per_token()
    assert budget.peak(tokens) == budget.for_sequence(tokens)


@given(BUFFERS, st.integers(0, 130))
def test_peak_is_the_most_that_is_held_at_any_moment(buffers: list[Buffer], tokens: int) -> None:
    budget = StateBudget.fold(buffers)
    assert budget.peak(tokens) == max(budget.for_sequence(moment) for moment in range(tokens + 1))


@given(st.lists(st.tuples(st.integers(1, 14), st.integers(1, 99)), min_size=2, max_size=5), st.integers(0, 400))
def test_peak_holds_for_several_ragged_tails_beside_pools(tails: list[tuple[int, int]], tokens: int) -> None:
    held = [_buffer(ragged(k), width) for k, width in tails] + [_buffer(pool(k)) for k, _ in tails]
    budget = StateBudget.fold(held)
    assert budget.peak(tokens) == max(budget.for_sequence(moment) for moment in range(tokens + 1))


def test_a_ragged_tail_can_be_largest_before_the_end() -> None:
    # At 4 tokens the pool completes: 1 row of 10 bytes; at 3 the tail held 3 x 100.
    budget = StateBudget.fold([_buffer(pool(4), 10), _buffer(ragged(4), 100)])
    assert (budget.for_sequence(4), budget.peak(4)) == (10, 300)


@given(BUFFERS, st.integers(-(10**6), -1))
def test_a_negative_length_is_refused_whatever_the_budget_holds(buffers: list[Buffer], tokens: int) -> None:
    """`peak` ended in a ValueError of `max`, and an empty budget answered 0."""
    budget = StateBudget.fold(buffers)
    expected = f"tokens: found {tokens}; expected 0 or more; a sequence cannot be shorter than empty"
    for ask in (budget.for_sequence, budget.peak):
        with pytest.raises(UsageError) as error:
            ask(tokens)
        assert str(error.value) == expected


def test_a_negative_number_of_drafts_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        _published(-1)
    assert str(error.value) == "num_spec: found -1; expected 0 or more; name the tokens drafted a step"


def test_activations_and_scratch_are_named_and_never_counted() -> None:
    budget = StateBudget.fold(
        [
            _buffer(TOKEN, 3),
            _buffer(TOKEN, 1000, home=Home.ACTIVATION, term="highway"),
            _buffer(FIXED, 1000, home=Home.SCRATCH, term="scratch"),
        ]
    )
    assert [term.name for term in budget.terms] == ["state", "highway", "scratch"]
    assert [term.name for term in budget.counted] == ["state"]
    assert (budget.fixed(), budget.per_token(), budget.for_sequence(2)) == (0, 3, 6)


def test_a_term_holds_each_distinct_buffer_with_its_layers() -> None:
    rows, other = _buffer(TOKEN, 3), _buffer(TOKEN, 5)
    (term,) = StateBudget.fold([rows, other, rows]).terms
    assert term.buffers == ((rows, 2), (other, 1))
    assert term.num_layers == 2
    assert term.nbytes(tokens=10) == 10 * (2 * 3 + 5)


def test_an_empty_budget_costs_nothing() -> None:
    budget = StateBudget.fold([])
    assert (budget.fixed(), budget.per_token(), budget.for_sequence(9), budget.peak(9)) == (0, 0, 0, 0)
    assert budget.kda_recurrent == budget.dsa_kv_per_token == 0


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_a_share_of_heads_is_made_of_whole_heads(heads: int, width: int, ranks: int) -> None:
    cut = Buffer(
        name="x",
        term="x",
        shape=(heads * width,),
        dtype=DType.U8,
        per=FIXED,
        home=Home.SLOT,
        rewind=Rewind.SNAPSHOT,
        split=split(Axis.HEADS, 0, heads * width, heads),
    )
    share = StateBudget.fold([cut]).per_rank(ranks).fixed()
    assert share == -(-heads // ranks) * width


def test_two_budgets_of_the_same_buffers_are_equal() -> None:
    assert _published(3) == _published(3)
    assert _published(3) != _published(2)
    assert _published().per_rank(2) != _published()
