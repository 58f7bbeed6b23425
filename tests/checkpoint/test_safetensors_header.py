from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save_file

from modelbones.checkpoint.exact import walk
from modelbones.checkpoint.header import _loads, _plain, parse_header
from modelbones.checkpoint.stored import Forms, Header, Stored
from modelbones.checkpoint.text import is_too_deep
from modelbones.dtypes import DType
from modelbones.errors import HeaderError, TruncatedError
from tests.checkpoint.corpus import CORPUS
from tests.checkpoint.corpus_words import U8_2, framed, shaped

THREE = (
    b'{"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},'
    b'"b":{"dtype":"F32","shape":[],"data_offsets":[12,16]},'
    b'"c":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[16,21]}}'
)


def test_a_header_is_read_to_columns() -> None:
    header = parse_header(THREE, place="m", data_bytes=21)
    assert header.names == ("a", "b", "c")
    assert header.stored == [
        Stored(dtype=DType.BF16, shape=(2, 3), nbytes=12),
        Stored(dtype=DType.F32, shape=(), nbytes=4),
        Stored(dtype=DType.F8_E4M3, shape=(5,), nbytes=5),
    ]
    assert list(header.starts) == [0, 12, 16]
    assert header.data_bytes == 21
    assert header.metadata == {}


def test_tensors_that_are_alike_share_one_record_across_files() -> None:
    forms = Forms()
    first = parse_header(THREE, place="1", forms=forms)
    second = parse_header(THREE, place="2", forms=forms)
    assert all(one is other for one, other in zip(first.stored, second.stored, strict=True))


def test_without_the_size_of_the_data_only_the_header_is_judged() -> None:
    assert parse_header(THREE, place="m").data_bytes == 21


def test_a_short_file_names_the_missing_bytes_and_the_tensors_past_its_end() -> None:
    with pytest.raises(TruncatedError) as caught:
        parse_header(THREE, place="m", data_bytes=14)
    assert str(caught.value) == (
        'm: the file ends 7 bytes early, and 2 tensors (1 in part) with it: "b", "c"; '
        "expected 21 bytes of data; download the file again"
    )
    assert caught.value.missing_bytes == 7
    assert caught.value.partly == ("b",)
    assert caught.value.wholly == ("c",)


def test_a_file_cut_between_two_tensors_has_none_in_part() -> None:
    with pytest.raises(TruncatedError) as caught:
        parse_header(THREE, place="m", data_bytes=12)
    assert (caught.value.missing_bytes, caught.value.partly, caught.value.wholly) == (9, (), ("b", "c"))


def test_all_faults_of_a_header_are_collected() -> None:
    raw = b'{"a":{"dtype":"X"},"b":3,"c":' + shaped(b"[2]", b"[0,9]") + b"}"
    with pytest.raises(HeaderError) as caught:
        parse_header(raw, place="m")
    assert str(caught.value) == (
        'm: tensor "a": no shape; expected dtype, shape and data_offsets; '
        "write or download the file again (3 more faults in this header)"
    )
    assert [str(fault) for fault in caught.value.faults] == [
        'tensor "a": found no shape; expected dtype, shape and data_offsets',
        'tensor "a": found no data_offsets; expected dtype, shape and data_offsets',
        'tensor "b": found 3; expected an object with dtype, shape and data_offsets',
        'tensor "c": found 9 bytes of data (0 to 9); expected 2 for U8 [2]',
    ]
    assert caught.value.names == ("a", "b", "c")


def test_the_walk_stops_after_100_faults() -> None:
    raw = b"{" + b",".join(b'"%d":1' % at for at in range(1000)) + b"}"
    with pytest.raises(HeaderError) as caught:
        parse_header(raw, place="m")
    assert str(caught.value).endswith("again (at least 99 more faults in this header)")
    assert len(caught.value.faults) == 100
    assert len(caught.value.names) == 1000


@pytest.mark.parametrize(
    ("raw", "is_deep"),
    [
        (b"[" * 127 + b"]" * 127, False),
        (b"[" * 128 + b"]" * 128, True),
        (b'{"a":' * 127 + b"1" + b"}" * 127, False),
        (b'{"a":' * 128 + b"1" + b"}" * 128, True),
        (b"[" + b"[[]]," * 1000 + b"[]]", False),
        (b'["' + b"[" * 200 + b'"]', False),
        (b'["\\"' + b"[" * 200 + b'"]', False),
        (b"[" * 128, True),
        (b"]" * 128, False),
        (b'"' + b"[" * 200, False),
    ],
)
def test_the_depth_of_a_text_is_that_of_its_brackets_outside_strings(raw: bytes, is_deep: bool) -> None:
    assert is_too_deep(raw) is is_deep


def test_a_message_shows_no_control_characters_and_no_endless_name() -> None:
    name = "x" * 500 + "\\u001b[31m"
    with pytest.raises(HeaderError) as caught:
        parse_header(b'{"' + name.encode() + b'":1}', place="m")
    assert str(caught.value) == (
        f'm: tensor "{"x" * 80}...{"x" * 25}\\x1b[31m": 1; '
        "expected an object with dtype, shape and data_offsets; write or download the file again"
    )


@pytest.mark.parametrize("order", [("c", "a", "b"), ("b", "c", "a"), ("a", "b", "c")])
def test_entries_in_any_order_read_equal_fast_and_exactly(order: tuple[str, ...]) -> None:
    entries = json.loads(THREE)
    raw = json.dumps({name: entries[name] for name in order}, separators=(",", ":")).encode()
    fast = _plain(raw, _loads(raw, place="m"), Forms())
    assert fast is not None
    assert fast == walk(raw, place="m", forms=Forms())
    assert dict(zip(fast.names, fast.starts, strict=True)) == {"a": 0, "b": 12, "c": 16}


@pytest.mark.parametrize(
    "raw",
    [
        THREE,
        b'{"__metadata__":{"format":"pt"},' + THREE[1:],
        b'{"__metadata__":{"url":"https://a:1/"},' + THREE[1:],
        b'{"kernel:0":' + U8_2 + b"}",
        json.dumps(json.loads(THREE), indent=2).encode(),
        b'{"true":' + U8_2 + b"}",
        b'{"a":' + shaped(b"[0,7]", b"[0,0]") + b',"b":' + shaped(b"[2]") + b"}",
    ],
)
def test_the_fast_way_takes_what_files_really_hold(raw: bytes) -> None:
    assert _plain(raw, _loads(raw, place="m"), Forms()) == walk(raw, place="m", forms=Forms())


def test_numpy_files_read_equal(tmp_path: Path) -> None:
    arrays = {
        "w": np.zeros((3, 5), dtype=np.float32),
        "z": np.zeros((), dtype=np.int64),
        "h": np.zeros((2, 2, 2), dtype=ml_dtypes.bfloat16),
        "e": np.zeros((0, 4), dtype=np.float16),
        "b": np.zeros(3, dtype=np.bool_),
        "q": np.zeros((2, 7), dtype=np.uint8),
    }
    path = tmp_path / "m.safetensors"
    save_file(arrays, path, metadata={"format": "pt", "note": 'a "quoted": colon'})
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = parse_header(raw[8 : 8 + length], place="m", data_bytes=len(raw) - 8 - length)
    read = {
        name: (stored.dtype.value, list(stored.shape), stored.nbytes)
        for name, stored in zip(header.names, header.stored, strict=True)
    }
    assert read == {
        "w": ("F32", [3, 5], 60),
        "z": ("I64", [], 8),
        "h": ("BF16", [2, 2, 2], 16),
        "e": ("F16", [0, 4], 0),
        "b": ("BOOL", [3], 3),
        "q": ("U8", [2, 7], 14),
    }
    written = json.loads(raw[8 : 8 + length])
    assert dict(zip(header.names, header.starts, strict=True)) == {
        name: written[name]["data_offsets"][0] for name in arrays
    }
    assert header.metadata == {"format": "pt", "note": 'a "quoted": colon'}


def test_every_dtype_we_name_is_one_the_package_reads_at_our_width() -> None:
    for dtype in DType:
        nbytes = dtype.bits  # of 8 elements
        raw = b'{"a":' + shaped(b"[8]", f"[0,{nbytes}]".encode(), f'"{dtype.value}"'.encode()) + b"}"
        assert len(deserialize(framed(raw, bytes(nbytes)))) == 1
        assert parse_header(raw, place="m", data_bytes=nbytes).stored[0].nbytes == nbytes


def test_a_header_of_nothing_but_brackets_takes_bounded_memory() -> None:
    raw = b'{"a":[' + b"[]," * 100_000 + b"[]]}"
    tracemalloc.start()
    with pytest.raises(HeaderError):
        parse_header(raw, place="m")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(raw)


def _outcome(raw: bytes) -> Header | str:
    try:
        return walk(raw, place="m", forms=Forms())
    except HeaderError as error:
        return str(error)


def _ensure_both_ways_agree(raw: bytes) -> None:
    """Whatever the fast way accepts, the exact walk accepts as the same header."""
    try:
        entries = _loads(raw, place="m")
    except HeaderError:
        return
    if type(entries) is dict and (fast := _plain(raw, entries, Forms())) is not None:
        assert _outcome(raw) == fast


NUMBERS = st.sampled_from(
    ["0", "1", "2", "4", "-0", "2.0", "true", "false", "null", "[]", '""', "18446744073709551616"]
)
LISTS = st.lists(NUMBERS, max_size=3).map(lambda items: f"[{','.join(items)}]")
VALUES = st.one_of(LISTS, NUMBERS, st.sampled_from(['"U8"', '"F32"', '"F4"', '"X"', "{}", "[[1]]", '{"a":1}']))
KEYS = st.sampled_from(["dtype", "shape", "data_offsets", "x", "\\u0078", "dtype"])


def _objects(keys: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(keys, values), max_size=4).map(
        lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
    )


@st.composite
def tilings(draw: st.DrawFn) -> str:
    """Headers that are nearly right: tensors behind each other, one number or key touched at most."""
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    names = draw(st.lists(st.sampled_from(["a", "b", "c:0", "d", "e", "\\u0061", "true"]), min_size=5, max_size=5))
    entries = [
        f'"{name}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{end - size},{end}]}}'
        for name, size, end in zip(names, sizes, ends, strict=False)
    ]
    entries = draw(st.permutations(entries))
    if draw(st.booleans()):
        entries.insert(0, '"__metadata__":' + draw(_objects(st.sampled_from(["k", "k:", "x"]), st.just('"v:"'))))
    text = "{" + ",".join(entries) + "}"
    old, new = draw(
        st.tuples(
            st.sampled_from(["0", "1", '"U8"', "[1]", "U8", '"shape"', ":"]),
            st.sampled_from(
                ["0", "1", "true", "false", "1.0", '"F4"', "[]", "-1", "{}", '"y":3,"shape"', " : ", '"y"']
            ),
        )
    )
    return text.replace(old, new, 1) if draw(st.booleans()) else text


@settings(max_examples=1000, deadline=None)
@given(tilings())
def test_nearly_right_headers_read_the_same_both_ways(text: str) -> None:
    _ensure_both_ways_agree(text.encode())


@settings(max_examples=500, deadline=None)
@given(_objects(st.sampled_from(["a", "b", "__metadata__"]), st.one_of(_objects(KEYS, VALUES), VALUES)))
def test_any_json_reads_the_same_both_ways(text: str) -> None:
    _ensure_both_ways_agree(text.encode())


def test_the_corpus_reads_the_same_both_ways() -> None:
    for case in CORPUS:
        if case.raw[8:9] == b"{":
            _ensure_both_ways_agree(case.raw[8 : 8 + int.from_bytes(case.raw[:8], "little")])


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=100).map(lambda b: b"{" + b + b"}")), st.integers(0, 99))
def test_any_bytes_parse_or_give_our_error(raw: bytes, data_bytes: int) -> None:
    try:
        parse_header(raw, place="m", data_bytes=data_bytes)
    except HeaderError as error:
        assert str(error).startswith("m: ")  # noqa: PT017


@settings(max_examples=500, deadline=None)
@given(tilings(), st.integers(0, 15))
def test_what_we_accept_the_package_accepts_too(text: str, data_bytes: int) -> None:
    raw = text.encode()
    try:
        parse_header(raw, place="m", data_bytes=data_bytes)
    except HeaderError:
        return
    try:
        deserialize(framed(raw, bytes(data_bytes)))
    except SafetensorError as error:
        pytest.fail(f"{raw!r}: {error}")
