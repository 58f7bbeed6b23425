from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.errors import UsageError
from modelbones.ranks import ONE_RANK, Axis, Ranks, Split, split, widest_shape


def test_an_axis_no_one_divides_is_held_whole() -> None:
    assert ONE_RANK.along(Axis.HEADS) == 1
    ranks = Ranks.of({Axis.HEADS: 4})
    assert (ranks.along(Axis.HEADS), ranks.along(Axis.LATENT)) == (4, 1)


def test_the_order_in_which_axes_are_named_does_not_matter() -> None:
    assert Ranks.of({Axis.HEADS: 2, Axis.EXPERTS: 8}) == Ranks.of({Axis.EXPERTS: 8, Axis.HEADS: 2})


@pytest.mark.parametrize("count", [0, -1])
def test_a_rank_count_below_one_is_refused(count: int) -> None:
    with pytest.raises(UsageError) as error:
        Ranks.of({Axis.HEADS: count})
    assert str(error.value) == f"ranks: found {count} for heads; expected at least 1; name a real rank count"


def test_64_heads_over_6_ranks_leave_11_heads_on_the_widest() -> None:
    # 64 = 4 x 11 + 2 x 10; a floor would say 10 and be short.
    heads = split(Axis.HEADS, 0, 64 * 128, 64)
    assert widest_shape((8192, 4096), heads, Ranks.of({Axis.HEADS: 6})) == (11 * 128, 4096)


def test_every_member_of_a_fused_tensor_is_cut_by_itself() -> None:
    # q, k and v of 64 heads x 128 each, 5 ranks: 13 heads of each on the widest rank.
    fused = Split(axis=Axis.HEADS, dim=1, blocks=((8192, 64),) * 3)
    assert fused.widest(Ranks.of({Axis.HEADS: 5})) == 3 * 13 * 128


def test_each_element_is_a_unit_of_its_own_when_no_units_are_named() -> None:
    (cut,) = split(Axis.LATENT, 0, 512)
    assert cut.widest(Ranks.of({Axis.LATENT: 3})) == 171  # 512 = 171 + 171 + 170


@given(units=st.integers(1, 300), width=st.integers(1, 300), ranks=st.integers(1, 400))
def test_the_widest_share_times_the_ranks_covers_the_whole(units: int, width: int, ranks: int) -> None:
    whole = units * width
    (cut,) = split(Axis.HEADS, 0, whole, units)
    widest = cut.widest(Ranks.of({Axis.HEADS: ranks}))
    assert whole <= widest * ranks
    assert widest % width == 0
    assert widest - width < whole / ranks
    if units % ranks == 0:
        assert widest * ranks == whole


@given(units=st.integers(1, 64), width=st.integers(1, 64), ranks=st.integers(1, 64))
def test_another_axis_cuts_nothing(units: int, width: int, ranks: int) -> None:
    cut = split(Axis.HEADS, 0, units * width, units)
    assert widest_shape((units * width, 3), cut, Ranks.of({Axis.EXPERTS: ranks})) == (units * width, 3)
