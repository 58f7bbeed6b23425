"""JSON text: why it is refused, in our words, and a reading of it that loses nothing.

orjson is fast, keeps the last of duplicate keys silently and turns integers past 64 bits
into floats. `read_members` keeps every member and every number as it is written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

DEEPEST = 127
"""Levels of brackets read. Source: serde_json de.rs::Deserializer, which safetensors uses."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class Literal(str):
    """A number that is no integer of 64 bits, as it is written."""

    __slots__ = ()


class Members(list[tuple[str, object]]):
    """The members of a JSON object, duplicates and all."""

    __slots__ = ()

    def repeated(self) -> Iterator[tuple[str, int]]:
        """Each key that stands more than once, and how often."""
        counts = Counter(key for key, _ in self)
        return ((key, count) for key, count in counts.items() if count > 1)


def diagnose(raw: bytes, *, what: str) -> tuple[str, str]:
    """(what was found, what was expected) of a text that is no JSON, or nested too deep."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start:,} of the {what} is not UTF-8", "UTF-8 text"
    if is_too_deep(raw):
        return f"the {what} is nested more than {DEEPEST} levels deep", "3 levels"
    return f"the {what} is not JSON", "one JSON object"


def is_too_deep(raw: bytes) -> bool:
    """Whether brackets outside strings nest deeper than `DEEPEST`.

    Each round takes away the innermost pairs, a level of each branch. Of a text that is not
    JSON, where kinds may cross, the brackets left open are what counts.
    """
    brackets = _STRING.sub(b"", raw).translate(_SQUARE, _NOT_BRACKETS)
    for _ in range(DEEPEST):
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            return fewer.count(b"[") > DEEPEST
        brackets = fewer
    return bool(brackets)


def read_members(raw: bytes) -> object:
    """The value of a JSON text that orjson accepts and that is not too deep; its objects are `Members`."""
    return json.loads(
        raw.decode(),
        object_pairs_hook=Members,
        parse_int=_integer,
        parse_float=Literal,
    )


def shown(value: object) -> str:
    """A JSON value as a message may show it: numbers as written, the rest by its kind."""
    if isinstance(value, Literal):
        return value if len(value) <= 30 else f"{value[:20]}... ({len(value):,} characters)"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    kinds = ((str, "a string"), (Members, "an object"), (list, "a list"))
    return next(text for kind, text in kinds if isinstance(value, kind))


def _integer(digits: str) -> int | Literal:
    return int(digits) if len(digits) <= 20 else Literal(digits)
