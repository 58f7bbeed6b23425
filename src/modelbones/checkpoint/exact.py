"""The exact walk over one header: entry by entry, every fault with its words.

It decides wherever the fast folds of `header.py` do not: a fault, a tensor without
elements out of order, keys besides the known three, colons in escaped strings.
"""

from __future__ import annotations

from array import array
from itertools import islice
from math import prod
from typing import NamedTuple

from modelbones.checkpoint.quote import counted, quoted
from modelbones.checkpoint.stored import AGAIN, BY_NAME, LARGEST, METADATA, Forms, Header, Stored, too_large
from modelbones.checkpoint.text import DEEPEST, Literal, Members, is_too_deep, read_members, shown
from modelbones.errors import Fault, HeaderError

MOST_FAULTS = 100
"""Faults after which the walk stops: enough to tell what kind of damage it is."""
_KEYS = ("dtype", "shape", "data_offsets")


class _Row(NamedTuple):
    start: int
    end: int
    name: str
    stored: Stored


class _Faults(list[Fault]):
    def note(self, path: str, found: str, expected: str) -> None:
        self.append(Fault(path, found, expected))


def walk(raw: bytes, *, place: str, forms: Forms) -> Header:
    """The header in `raw`, a JSON object that orjson accepts, or a HeaderError with all its faults."""
    if is_too_deep(raw):
        found = f"the header is nested more than {DEEPEST} levels deep"
        raise HeaderError(place=place, found=found, expected="3 levels", fix=AGAIN)
    members = read_members(raw)
    assert isinstance(members, Members)
    faults = _Faults()
    for key, count in islice(members.repeated(), MOST_FAULTS):
        faults.note(_path(key), f"named {count} times", "once")
    metadata = _metadata(members, faults)
    rows = []
    for name, value in members:
        if len(faults) >= MOST_FAULTS:
            break
        if name != METADATA and (row := _row(name, value, forms, faults)):
            rows.append(row)
    if not faults:
        _check_tiling(rows, faults)
    if faults:
        raise _refusal(faults, place=place, names=tuple(dict(members)))
    return Header(
        names=tuple(row.name for row in rows),
        stored=[row.stored for row in rows],
        starts=array("Q", [row.start for row in rows]),
        data_bytes=max((row.end for row in rows), default=0),
        metadata=metadata,
    )


def _path(name: str) -> str:
    return METADATA if name == METADATA else f"tensor {quoted(name)}"


def _refusal(faults: _Faults, *, place: str, names: tuple[str, ...]) -> HeaderError:
    first = faults[0]
    at_least = "at least " if len(faults) >= MOST_FAULTS else ""
    rest = f" ({at_least}{counted(len(faults) - 1, 'more fault')} in this header)" if len(faults) > 1 else ""
    return HeaderError(
        place=place,
        found=f"{first.path}: {first.found}",
        expected=first.expected,
        fix=AGAIN + rest,
        faults=tuple(islice(faults, MOST_FAULTS)),
        names=tuple(name for name in names if name != METADATA),
    )


def _metadata(members: Members, faults: _Faults) -> dict[str, str]:
    value = dict(members).get(METADATA, Members())
    if not isinstance(value, Members):
        faults.note(METADATA, shown(value), "an object of strings")
        return {}
    for key, count in value.repeated():
        faults.note(METADATA, f"key {quoted(key)} stands {count} times", "once")
    strings: dict[str, str] = {}
    for key, text in value:
        if isinstance(text, str) and not isinstance(text, Literal):
            strings[key] = text
        else:
            faults.note(METADATA, f"key {quoted(key)} holds {shown(text)}", "a string")
    return strings


def _row(name: str, value: object, forms: Forms, faults: _Faults) -> _Row | None:
    """One entry, or None and at least one fault."""
    path, before = _path(name), len(faults)
    if not isinstance(value, Members):
        faults.note(path, shown(value), "an object with dtype, shape and data_offsets")
        return None
    for key, count in value.repeated():
        faults.note(path, f"key {quoted(key)} stands {count} times", "once")
    entry = dict(value)
    for key in _KEYS:
        if key not in entry:
            faults.note(path, f"no {key}", "dtype, shape and data_offsets")
    if len(faults) > before:
        return None
    dtype = _dtype(path, entry["dtype"], faults)
    shape = _shape(path, entry["shape"], faults)
    span = _span(path, entry["data_offsets"], faults)
    if dtype is None or shape is None or span is None or not _is_whole(path, dtype, shape, faults):
        return None
    return _sized(_Row(*span, name, forms[dtype, shape]), faults)


def _dtype(path: str, value: object, faults: _Faults) -> str | None:
    if isinstance(value, str) and value in BY_NAME:
        return value
    is_name = isinstance(value, str) and not isinstance(value, Literal)
    faults.note(path, f"dtype {quoted(str(value)) if is_name else shown(value)}", f"one of {', '.join(BY_NAME)}")
    return None


def _shape(path: str, value: object, faults: _Faults) -> tuple[int, ...] | None:
    shape = _integers(path, "shape", value, faults)
    if shape is None:
        return None
    if too_large(shape):
        faults.note(path, f"shape {_dims(shape)}", f"at most {LARGEST:,} elements")
        return None
    return shape


def _span(path: str, value: object, faults: _Faults) -> tuple[int, int] | None:
    span = _integers(path, "data_offsets", value, faults)
    if span is None:
        return None
    if len(span) != 2:
        faults.note(path, f"{counted(len(span), 'data offset')}", "2, its begin and its end")
        return None
    if span[0] > span[1]:
        faults.note(path, f"data from byte {span[0]:,} to {span[1]:,}", "an end that is not before the begin")
        return None
    return span[0], span[1]


def _integers(path: str, key: str, value: object, faults: _Faults) -> tuple[int, ...] | None:
    if not isinstance(value, list) or isinstance(value, Members):
        faults.note(path, f"{key} is {shown(value)}", "a list of integers")
        return None
    for item in value:
        if type(item) is not int or not 0 <= item <= LARGEST:
            faults.note(path, f"{key} holds {shown(item)}", f"integers from 0 to {LARGEST:,}")
            return None
    return tuple(value)


def _is_whole(path: str, dtype: str, shape: tuple[int, ...], faults: _Faults) -> bool:
    bits = prod(shape) * BY_NAME[dtype].bits
    if bits % 8:
        faults.note(path, f"{dtype} {_dims(shape)} takes {bits:,} bits", "whole bytes")
    elif bits // 8 > LARGEST:
        faults.note(path, f"{dtype} {_dims(shape)} takes {bits // 8:,} bytes", f"at most {LARGEST:,}")
    return bits % 8 == 0 and bits // 8 <= LARGEST


def _sized(row: _Row, faults: _Faults) -> _Row | None:
    size, stored = row.end - row.start, row.stored
    if size == stored.nbytes:
        return row
    found = f"{counted(size, 'byte')} of data ({row.start:,} to {row.end:,})"
    faults.note(_path(row.name), found, f"{stored.nbytes:,} for {stored.dtype.value} {_dims(stored.shape)}")
    return None


def _dims(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _check_tiling(rows: list[_Row], faults: _Faults) -> None:
    """The data is covered from 0 to its end, each byte by one tensor."""
    end, last = 0, ""
    for row in sorted(rows, key=lambda row: (row.start, row.end)):
        if row.start > end:
            after = f"after {_path(last)}" if last else "before the first tensor"
            faults.note(_path(row.name), f"begins at byte {row.start:,}", f"{end:,}: a gap {after}")
        elif row.start < end:
            overlap = f"{end:,}, where {_path(last)} ends: they overlap"
            faults.note(_path(row.name), f"begins at byte {row.start:,}", overlap)
        end, last = max(end, row.end), row.name
