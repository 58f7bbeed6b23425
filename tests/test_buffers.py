from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.buffers import (
    FIXED,
    TOKEN,
    Buffer,
    Grows,
    Growth,
    Home,
    Rewind,
    last,
    pool,
    ragged,
    token_in_pools,
    window,
)
from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.ranks import Axis, Ranks, split

ALL_GROWTHS = st.one_of(
    st.sampled_from([FIXED, TOKEN]),
    st.builds(pool, st.integers(1, 9)),
    st.builds(window, st.integers(1, 9)),
    st.builds(ragged, st.integers(1, 9)),
    st.builds(last, st.integers(1, 9)),
    st.builds(token_in_pools, st.integers(1, 9)),
)


def _buffer(growth: Growth, **changes: object) -> Buffer:
    fields: dict[str, object] = {
        "name": "rows",
        "term": "rows",
        "shape": (128,),
        "dtype": DType.BF16,
        "per": growth,
        "home": Home.OWNED,
        "rewind": Rewind.TRUNCATE,
    }
    return Buffer(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("growth", "rows"),
    [
        (FIXED, [1, 1, 1, 1, 1, 1]),
        (TOKEN, [0, 1, 2, 3, 4, 5]),
        (pool(2), [0, 0, 1, 1, 2, 2]),
        (window(3), [0, 1, 2, 3, 3, 3]),
        (ragged(3), [0, 1, 2, 0, 1, 2]),
        (last(4), [0, 0, 0, 0, 1, 1]),
    ],
)
def test_the_rows_of_each_growth_for_0_to_5_tokens(growth: Growth, rows: list[int]) -> None:
    assert [growth.rows(tokens) for tokens in range(6)] == rows


def test_every_growth_is_tried_above() -> None:
    assert {FIXED.grows, TOKEN.grows, pool(2).grows, window(3).grows, ragged(3).grows, last(4).grows} == set(Grows)


@pytest.mark.parametrize("rule", [pool, window, ragged, last, token_in_pools])
def test_peak_rows_is_the_most_rows_on_the_way(rule: Callable[[int], Growth]) -> None:
    for growth in (FIXED, TOKEN, *(rule(k) for k in range(1, 10))):
        rows = [growth.rows(tokens) for tokens in range(40)]
        assert [growth.peak_rows(tokens) for tokens in range(40)] == [max(rows[: end + 1]) for end in range(40)]


@given(ALL_GROWTHS, st.integers(-(10**9), -1))
def test_a_negative_length_is_refused_by_every_growth(growth: Growth, tokens: int) -> None:
    """A ragged tail's peak and reserve answered with a negative number of rows."""
    expected = f"tokens: found {tokens}; expected 0 or more; a sequence cannot be shorter than empty"
    for ask in (growth.rows, growth.peak_rows, growth.reserved_rows):
        with pytest.raises(UsageError) as error:
            ask(tokens)
        assert str(error.value) == expected


@given(st.integers(1, 9), st.integers(0, 200))
def test_rows_are_reserved_in_whole_pools_rounded_down(k: int, tokens: int) -> None:
    reserved = token_in_pools(k).reserved_rows(tokens)
    assert reserved % k == 0
    assert tokens - k < reserved <= tokens


def test_one_indexer_row_is_513_bytes() -> None:
    # k_normed 128 x 2, gate 128 x 2, one validity byte.
    row = _buffer(TOKEN).nbytes(tokens=1) * 2 + _buffer(TOKEN, shape=(), dtype=DType.U8).nbytes(tokens=1)
    assert row == 128 * 2 + 128 * 2 + 1 == 513


def test_a_reserve_drops_the_partial_pool_that_the_rows_still_hold() -> None:
    rows = _buffer(token_in_pools(4))
    assert rows.nbytes(tokens=7) == 7 * 256
    assert rows.reserved_nbytes(max_context=7) == 4 * 256


def test_each_speculative_token_adds_a_row_to_dimension_0_where_it_is_declared() -> None:
    conv = _buffer(FIXED, shape=(3, 24_576), draft_rows=1)
    # 24,576 = 3 x 64 x 128 channels of bf16.
    assert conv.nbytes(tokens=0) == 3 * 24_576 * 2
    assert conv.drafting(2).nbytes(tokens=0) == 5 * 24_576 * 2
    assert conv.drafting(0) is conv
    plain = _buffer(FIXED)
    assert plain.drafting(2) is plain
    with pytest.raises(UsageError) as error:
        conv.drafting(-1)
    assert str(error.value) == "num_spec: found -1; expected 0 or more; name the tokens drafted a step"


def test_a_row_that_is_no_whole_byte_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        _buffer(TOKEN, shape=(3,), dtype=DType.F4).nbytes(tokens=2)
    assert str(error.value) == "size: found 12 bits; expected a whole number of bytes; pad the last dimension"


def test_a_buffer_without_a_split_is_whole_on_every_rank() -> None:
    ranks = Ranks.of({Axis.HEADS: 8})
    assert _buffer(TOKEN).nbytes(tokens=3, ranks=ranks) == 3 * 256
    cut = _buffer(TOKEN, split=split(Axis.HEADS, 0, 128, 64))
    assert cut.nbytes(tokens=3, ranks=ranks) == 3 * 32


def test_buffers_are_equal_by_value_and_serve_as_keys() -> None:
    assert _buffer(pool(4)) == _buffer(pool(4))
    assert len({_buffer(pool(4)), _buffer(pool(4)), _buffer(pool(5))}) == 2
