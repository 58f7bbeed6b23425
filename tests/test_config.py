from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.config import (
    MISSING,
    Absent,
    Assumption,
    Ledger,
    Said,
    Section,
    Spot,
    flag,
    indices,
    integer,
    number,
    shown,
    unread_paths,
    word,
    words,
)
from modelbones.errors import ConfigError, Fault


def _top(**values: Any) -> Section:
    return Section(values, "", Ledger("config.json"))


def _faults(section: Section) -> list[str]:
    return [str(fault) for fault in section.ledger.faults]


NOT_INTEGERS = [True, False, 1.0, 4.5, "4", [4], {"a": 4}, float("nan"), float("inf"), -float("inf")]
AS_SHOWN = ["true", "false", "1.0", "4.5", '"4"', "[4]", '{"a": 4}', "NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize(("value", "found"), list(zip(NOT_INTEGERS, AS_SHOWN, strict=True)))
def test_only_an_integer_passes_for_an_integer(value: Any, found: str) -> None:
    top = _top(k=value)
    integer(top.at("k"))
    assert _faults(top) == [f"k: found {found}; expected a positive integer"]
    assert not top.ledger.is_sound(top.at("k"))


@pytest.mark.parametrize(
    ("minimum", "maximum", "value", "expected"),
    [
        (1, None, 0, "a positive integer"),
        (1, None, -4, "a positive integer"),
        (0, None, -1, "an integer, 0 or more"),
        (3, None, 2, "an integer, 3 or more"),
        (0, 45, 46, "an integer from 0 to 45"),
        (1, None, 2**63, "a positive integer"),
    ],
)
def test_an_integer_out_of_range_is_a_fault(minimum: int, maximum: int | None, value: int, expected: str) -> None:
    top = _top(k=value)
    if maximum is None:
        integer(top.at("k"), minimum=minimum)
    else:
        integer(top.at("k"), minimum=minimum, maximum=maximum)
    assert _faults(top) == [f"k: found {value}; expected {expected}"]


@pytest.mark.parametrize("value", [True, "1.0", float("nan"), float("inf"), -float("inf"), [], 10**400, -(10**400)])
def test_a_number_is_finite_and_fits_a_float(value: Any) -> None:
    """An integer past the largest float ended in an OverflowError."""
    top = _top(k=value)
    number(top.at("k"))
    (fault,) = top.ledger.faults
    assert (fault.path, fault.expected) == ("k", "a finite number")


@given(st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_is_read_as_it_stands(value: float) -> None:
    top = _top(k=value)
    assert number(top.at("k")) == float(value)
    assert not top.ledger.faults


@pytest.mark.parametrize("value", [0, 1, "true", [], 1.0])
def test_only_true_and_false_are_flags(value: Any) -> None:
    top = _top(k=value)
    assert flag(top.at("k")) is False
    assert _faults(top) == [f"k: found {json.dumps(value)}; expected true or false"]


@pytest.mark.parametrize("value", ["green", "", 1, None.__class__.__name__, ["red"], {"red": 1}, True])
def test_an_unknown_word_is_a_fault_that_lists_the_known_ones(value: Any) -> None:
    top = _top(k=value)
    word(top.at("k"), meanings={"red": 1, "blue": 2})
    assert _faults(top) == [f"k: found {json.dumps(value)}; expected one of red, blue"]


@pytest.mark.parametrize("parse", [integer, number, flag])
@pytest.mark.parametrize("values", [{}, {"k": None}])
def test_an_absent_key_and_a_null_are_missing(parse: Callable[[Spot], object], values: dict[str, Any]) -> None:
    top = _top(**values)
    parse(top.at("k"))
    (fault,) = top.ledger.faults
    assert (fault.path, fault.found) == ("k", "missing")
    assert "k" in top.ledger.read


def test_an_absent_key_with_a_declared_meaning_is_noted_with_its_source() -> None:
    top = _top()
    assert integer(top.at("k"), absent=Absent(value=0, meaning="0: none", source="the paper")) == 0
    assert top.ledger.assumed == [Assumption("k", "0: none", "the paper")]
    assert not top.ledger.faults
    assert top.ledger.is_sound(top.at("k"))


def test_a_declared_meaning_does_not_excuse_a_wrong_value() -> None:
    top = _top(k="x")
    integer(top.at("k"), absent=Absent(value=0, meaning="0: none", source="the paper"))
    assert _faults(top) == ['k: found "x"; expected a positive integer']
    assert not top.ledger.assumed


def test_two_spellings_that_agree_are_one_fact() -> None:
    top = _top(a=4, b=4)
    assert integer(top.at("a"), top.at("b")) == 4
    assert not top.ledger.faults
    assert top.ledger.read == {"a", "b"}


def test_either_spelling_is_enough() -> None:
    top = _top(b=4)
    assert integer(top.at("a"), top.at("b")) == 4
    assert not top.ledger.faults


def test_two_spellings_that_disagree_are_a_fault_at_the_second() -> None:
    top = _top(a=4, b=5)
    integer(top.at("a"), top.at("b"))
    assert _faults(top) == ["b: found 5; expected what a says"]
    assert not top.ledger.is_sound(top.at("a"))


def test_a_wrong_value_at_one_spelling_makes_the_fact_unsound() -> None:
    top = _top(a=4, b="x")
    integer(top.at("a"), top.at("b"))
    assert _faults(top) == ['b: found "x"; expected a positive integer']
    assert not top.ledger.is_sound(top.at("a"))


def test_each_unknown_word_of_a_list_is_a_fault_of_its_own() -> None:
    top = _top(k=["x", "y", 3, ["x"]])
    assert words(top.at("k"), meanings={"x": 1}, length=4) is None
    assert _faults(top) == [
        'k[1]: found "y"; expected one of x',
        "k[2]: found 3; expected one of x",
        'k[3]: found ["x"]; expected one of x',
    ]


@pytest.mark.parametrize(
    ("value", "found"), [(["x"], "a list of 1"), ([], "a list of 0"), ("xx", '"xx"'), ({"x": 1}, '{"x": 1}'), (2, "2")]
)
def test_a_list_of_words_has_its_length(value: Any, found: str) -> None:
    top = _top(k=value)
    assert words(top.at("k"), meanings={"x": 1}, length=2) is None
    assert _faults(top) == [f"k: found {found}; expected a list of 2 words"]


def test_each_wrong_index_of_a_list_is_a_fault_of_its_own() -> None:
    top = _top(k=[0, 3, -1, True, 1.0, "1", 0, 2, [1], {}])
    assert indices(top.at("k"), start=0, stop=3) is None
    expected = "expected a layer index from 0 to 2, each once"
    assert _faults(top) == [
        f"k[1]: found 3; {expected}",
        f"k[2]: found -1; {expected}",
        f"k[3]: found true; {expected}",
        f"k[4]: found 1.0; {expected}",
        f'k[5]: found "1"; {expected}',
        f"k[6]: found 0; {expected}",
        f"k[8]: found [1]; {expected}",
        f"k[9]: found {{}}; {expected}",
    ]


def test_indices_that_are_no_list_are_a_fault() -> None:
    top = _top(k=7)
    assert indices(top.at("k"), start=0, stop=3) is None
    assert _faults(top) == ["k: found 7; expected a list of layer indices"]


def test_a_section_that_is_no_object_is_a_fault_at_its_path() -> None:
    top = _top(a={"b": [1]})
    section = top.section("a")
    assert section is not None
    assert section.section("b") is None
    assert section.section("c") is None
    assert _faults(top) == ["a.b: found [1]; expected an object"]


def test_all_faults_are_raised_at_once_in_reading_order() -> None:
    top = _top(b="x")
    integer(top.at("a"))
    integer(top.at("b"))
    with pytest.raises(ConfigError) as error:
        top.ledger.raise_faults()
    assert error.value.place == "config.json"
    assert error.value.faults == (
        Fault("a", "missing", "a positive integer"),
        Fault("b", '"x"', "a positive integer"),
    )
    assert str(error.value) == (
        "config.json: 2 faults in this config; correct each:\n"
        "  a: found missing; expected a positive integer\n"
        '  b: found "x"; expected a positive integer'
    )


def test_a_sound_config_raises_nothing() -> None:
    _top().ledger.raise_faults()


_HUGE = 10**5000
_CIRCLE: list[Any] = []
_CIRCLE.append(_CIRCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MISSING, "missing"),
        (Said("a list of 3"), "a list of 3"),
        ("a\n\x1b[31m", '"a\\n\\u001b[31m"'),
        ("\ud800", '"\\ud800"'),
        ("x" * 58, f'"{"x" * 58}"'),
        ("x" * 59, f'"{"x" * 55} ...'),
        (_HUGE, "an integer of thousands of digits"),
        ([1, _HUGE], "a value no JSON file can hold"),
        (_CIRCLE, "a value no JSON file can hold"),
        ({(1, 2): 3}, "a value no JSON file can hold"),
    ],
    ids=[str(number) for number in range(10)],
)
def test_a_value_is_shown_short_and_printable(value: Any, text: str) -> None:
    """Values no JSON file can hold, from a mapping, ended in ValueError and TypeError."""
    assert shown(value) == text
    assert len(shown(value)) <= 60


def test_a_value_nested_deeper_than_python_recurses_is_shown() -> None:
    """It ended in a RecursionError; JSON of newer Pythons is parsed deeper than that."""
    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit() * 200):
        deep = [deep]
    assert len(shown(deep)) <= 60


def test_unread_keys_are_listed_in_file_order_with_their_paths() -> None:
    """A null is an absent key: those that were looked at were listed all the same."""
    values = {"a": 1, "b": {"c": 2, "d": {"e": 3}, "f": {}}, "g": [1], "h": {"i": 1}, "j": 4, "n": None}
    assert list(unread_paths(values, {"a", "b.c", "h"})) == ["b.d.e", "b.f", "g", "j"]


def test_unread_keys_are_listed_however_deep_they_are() -> None:
    """The walk recursed and ended in a RecursionError."""
    depth = sys.getrecursionlimit() * 2
    values: dict[str, Any] = {"a": 1}
    for _ in range(depth - 1):
        values = {"a": values}
    assert list(unread_paths(values, set())) == [".".join(["a"] * depth)]
