from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.errors import UsageError
from modelbones.units import (
    ceil_div,
    format_bytes,
    format_exact,
    parse_bytes,
    parse_count,
    round_up,
    whole_bytes,
)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("513", 513),
        ("513B", 513),
        ("1KiB", 1024),
        ("1 MiB", 1048576),
        (" 96GiB ", 96 * 2**30),
        ("96gib", 96 * 2**30),
        ("2TiB", 2 * 2**40),
        ("1KB", 1000),
        ("80GB", 80_000_000_000),
        ("1.5TB", 1_500_000_000_000),
        # 45.07 x 1,073,741,824 = 48,393,543,...: 45 GiB = 48,318,382,080 and 0.07 GiB = 75,161,927.68.
        ("45.07GiB", 48_318_382_080 + 75_161_927),
        ("1,073,741,824", 1_073_741_824),
        ("1_048_576", 1_048_576),
    ],
)
def test_a_size_in_bytes_is_exact_and_a_fraction_of_a_byte_is_floored(text: str, nbytes: int) -> None:
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize(
    ("text", "count"),
    [("131072", 131_072), ("131,072", 131_072), ("128k", 131_072), ("128K", 131_072), ("1m", 1_048_576), ("0.5k", 512)],
)
def test_k_and_m_are_powers_of_1024_for_tokens(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "k", "-1", "1e5", "0x10", "1.5", "1GiB", "nan", "inf", "1 2", "1.", ".5k", "1,"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_count(text)
    expected = {
        "1.5": 'count: found "1.5"; expected a whole number such as 131072, 128k or 1m; write it so',
    }.get(text, f'count: found "{text}"; expected 131072, 128k or 1m; write it so')
    assert str(error.value) == expected


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "1e9", "96G", "96 gigabytes", "1GiB1", "NaN", "٣GiBs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_bytes(text)
    assert str(error.value) == f'bytes: found "{text}"; expected 96GiB, 80GB or a number of bytes; write it so'


@given(st.integers(0, 10**42))
def test_an_integer_of_any_length_is_read_exactly(count: int) -> None:
    """It was rounded to 28 significant digits, the default precision of Decimal."""
    assert parse_count(str(count)) == count
    assert parse_bytes(f"{count}B") == count


def test_a_fraction_in_the_last_place_is_still_a_fraction() -> None:
    """Rounding to 28 digits made a whole number of it."""
    with pytest.raises(UsageError, match="expected a whole number"):
        parse_count("10000000000.000000000000000001k")


def test_a_long_number_with_a_long_fraction_is_floored_to_the_byte() -> None:
    # 0.999999999999999999 x 2**40 = 2**40 - 1.0995e-6, floored 2**40 - 1.
    assert parse_bytes("1000000000000.999999999999999999TiB") == 10**12 * 2**40 + 2**40 - 1


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_ceil_div_is_the_smallest_that_covers(numerator: int, denominator: int) -> None:
    quotient = ceil_div(numerator, denominator)
    assert (quotient - 1) * denominator < numerator <= quotient * denominator
    assert round_up(numerator, denominator) == quotient * denominator


def test_a_size_that_is_no_whole_byte_is_refused() -> None:
    assert whole_bytes(4 * 2) == 1
    with pytest.raises(UsageError) as error:
        whole_bytes(12)
    assert str(error.value) == "size: found 12 bits; expected a whole number of bytes; pad the last dimension"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (2_363_654_144, "2.20 GiB"),  # 2.20132...
        (739_639_296, "705.38 MiB"),  # 705.375 exactly, halves go up
        (2**40, "1.00 TiB"),
        (5000 * 2**40, "5000.00 TiB"),
        (2**20 - 1, "1.00 MiB"),
        (2**30 - 1, "1.00 GiB"),
        (2**40 - 1, "1.00 TiB"),
    ],
)
def test_a_size_for_a_person_has_two_decimals_and_never_1024_of_a_unit(nbytes: int, text: str) -> None:
    """One byte short of a MiB was "1024.00 KiB"."""
    assert format_bytes(nbytes) == text


def test_the_exact_number_stands_beside_the_short_one() -> None:
    assert format_exact(2_363_654_144) == "2.20 GiB (2,363,654,144 bytes)"


@given(st.integers(0, 2**60))
def test_what_is_printed_exactly_is_read_back(nbytes: int) -> None:
    assert parse_bytes(f"{nbytes:,}") == nbytes
    assert parse_bytes(f"{nbytes}B") == nbytes
