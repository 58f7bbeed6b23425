"""One safetensors header: bytes in, checked columns out; no file is touched.

A file is an 8-byte little-endian length, a JSON header of that length and the data.
Source: safetensors 0.8 tensor.rs::SafeTensors.read_metadata, Metadata.validate.

Two ways lead to the same answer. `_plain` folds over whole columns at C speed and only
ever says "good"; whatever it does not prove good is walked entry by entry (`exact.py`),
where every fault gets its words.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate, chain
from operator import attrgetter, itemgetter

import orjson

from modelbones.checkpoint.data import ensure_brace, ensure_data
from modelbones.checkpoint.stored import AGAIN, LARGEST, METADATA, Forms, Header, Stored, UnfitError
from modelbones.checkpoint.text import diagnose
from modelbones.errors import HeaderError

_dtype = itemgetter("dtype")
_shape = itemgetter("shape")
_span = itemgetter("data_offsets")
_nbytes = attrgetter("nbytes")


def parse_header(raw: bytes, *, place: str, data_bytes: int | None = None, forms: Forms | None = None) -> Header:
    """The header in `raw` (without its 8-byte length), or a HeaderError with all its faults.

    `data_bytes`, where known, is how many bytes follow the header: fewer than it speaks of
    is a TruncatedError. `forms` is shared between the files of one checkpoint.
    """
    forms = Forms() if forms is None else forms
    ensure_brace(raw, place=place)
    header = _plain(raw, _loads(raw, place=place), forms)
    if header is None:
        from modelbones.checkpoint.exact import walk

        header = walk(raw, place=place, forms=forms)
    if data_bytes is not None:
        ensure_data(header, place=place, data_bytes=data_bytes)
    return header


def _loads(raw: bytes, *, place: str) -> dict[str, object]:
    try:
        entries: dict[str, object] = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found, expected = diagnose(raw, what="header")
        raise HeaderError(place=place, found=found, expected=expected, fix=AGAIN) from None
    return entries


def _plain(raw: bytes, entries: dict[str, object], forms: Forms) -> Header | None:
    """The header if column folds prove all of it good; None says nothing about it."""
    has_metadata = METADATA in entries
    metadata = entries.pop(METADATA, {})
    if type(metadata) is not dict or not set(map(type, metadata.values())) <= {str} or not entries:
        return None
    try:
        columns = _columns(entries, forms)
    except (KeyError, TypeError, UnfitError, orjson.JSONEncodeError):
        return None
    keys = 4 * len(entries) + len(metadata) + has_metadata
    if columns is None or not _is_each_key_once(raw, keys, chain(entries, metadata, metadata.values())):
        return None
    stored, starts, end = columns
    if end > LARGEST:
        return None
    return Header(names=tuple(entries), stored=stored, starts=array("Q", starts), data_bytes=end, metadata=metadata)


def _columns(entries: dict[str, object], forms: Forms) -> tuple[list[Stored], list[int], int] | None:
    """(stored, starts, end) if every entry is well formed and they tile the data."""
    rows: list[dict[str, object]] = list(entries.values())  # type: ignore[arg-type]  # a row that is none raises
    shapes: list[list[int]] = list(map(_shape, rows))
    spans: list[list[int]] = list(map(_span, rows))
    # Nothing but digits, commas and square brackets when written out: no sign, point, word,
    # string or object. Integers in lists, then: `tuple` raises at one outside a list, and
    # `forms`, which hashes, at a list in a list.
    digits = orjson.dumps(shapes).translate(None, b"[],")
    if digits and not digits.isdigit():
        return None
    stored = list(map(forms.__getitem__, zip(map(_dtype, rows), map(tuple, shapes), strict=True)))
    tiles = _tiles(stored)
    if orjson.dumps(spans) == orjson.dumps(tiles):
        return stored, [start for start, _ in tiles], tiles[-1][1]
    return _sorted_columns(stored, spans)


def _sorted_columns(stored: list[Stored], spans: list[list[int]]) -> tuple[list[Stored], list[int], int] | None:
    """As `_columns`, for entries whose order is not that of the data."""
    order = sorted(range(len(spans)), key=spans.__getitem__)
    tiles = _tiles([stored[at] for at in order])
    if orjson.dumps([spans[at] for at in order]) != orjson.dumps(tiles):
        return None
    return stored, [start for start, _ in spans], tiles[-1][1]


def _tiles(stored: list[Stored]) -> list[tuple[int, int]]:
    """The begins and ends of tensors that follow each other without a gap, from 0.

    Written out, they can only equal what is written as they are: pairs of integers.
    """
    ends = list(accumulate(map(_nbytes, stored)))
    return list(zip(chain((0,), ends), ends, strict=False))


def _is_each_key_once(raw: bytes, keys: int, strings: Iterable[str]) -> bool:
    """Whether the text has no more keys than these: none dropped for a later one of its name.

    Each key in the text has a colon after it. `keys` were looked up in what was kept (a name,
    and 3 in its entry); if there are no more colons than these, there were no other keys.
    """
    colons = raw.count(b":")
    if colons == keys:
        return True
    # Without escapes, strings stand in the text as they are: the colons inside them are known.
    return b"\\" not in raw and colons == keys + "".join(strings).count(":")
