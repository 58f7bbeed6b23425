"""A `config.json` as raw values: parsed strictly, read by key, every fault collected.

Nothing here knows what a key means: families do. A `Ledger` remembers which keys were
read, which absent ones were given a declared meaning, and everything that was wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from modelbones.errors import ConfigError, Fault

T = TypeVar("T")

MAX_INTEGER = 2**63 - 1


class Missing:
    """The type of `MISSING`, the value of a key that is absent or null."""

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Assumption:
    """An absent key whose absence has one meaning in the architecture.

    Attributes:
        path: Dotted path of the absent key.
        meaning: What its absence means.
        source: Who says so.
    """

    path: str
    meaning: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent(Generic[T]):
    """What a key's absence means in this architecture, and who says so."""

    value: T
    meaning: str
    source: str


@dataclass(slots=True)
class Ledger:
    """What happened while one config was read."""

    place: str
    faults: list[Fault] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    assumed: list[Assumption] = field(default_factory=list)
    unsound: set[str] = field(default_factory=set)

    def fault(self, path: str, *, found: object, expected: str) -> None:
        """Note one fault; `found` is shown shortened, text that is not from the file as it is."""
        self.unsound.add(path)
        self.faults.append(Fault(path, shown(found), expected))

    def is_sound(self, *spots: Spot) -> bool:
        """Whether every one of these facts was read without a fault."""
        return all(spot.path not in self.unsound for spot in spots)

    def raise_faults(self) -> None:
        """Raise everything that was noted, at once."""
        if self.faults:
            raise ConfigError(place=self.place, faults=tuple(self.faults))


class Section:
    """One mapping inside a config, with the dotted path that leads to it."""

    __slots__ = ("ledger", "path", "values")

    def __init__(self, values: Mapping[str, Any], path: str, ledger: Ledger) -> None:
        self.values = values
        self.path = path
        self.ledger = ledger

    def path_of(self, key: str) -> str:
        """Dotted path of `key`."""
        return f"{self.path}.{key}" if self.path else key

    def at(self, key: str) -> Spot:
        """The place of `key` in this section, present or not."""
        return Spot(self, key)

    def has(self, key: str) -> bool:
        """Whether `key` is there and not null."""
        return self.values.get(key) is not None

    def take(self, key: str) -> Any:
        """The raw value of `key`, marked as read; `MISSING` when absent or null."""
        self.ledger.read.add(self.path_of(key))
        value = self.values.get(key)
        return MISSING if value is None else value

    def section(self, key: str) -> Section | None:
        """The mapping under `key`; None when absent or null, a fault when it is anything else."""
        value = self.values.get(key)
        if isinstance(value, Mapping):
            return Section(value, self.path_of(key), self.ledger)
        if value is not None:
            self.ledger.fault(self.path_of(key), found=value, expected="an object")
        return None


class Spot(NamedTuple):
    """A place where a fact may be spelled."""

    section: Section
    key: str

    @property
    def path(self) -> str:
        """Dotted path."""
        return self.section.path_of(self.key)


def shown(found: object) -> str:
    """A value as a message shows it: JSON spelling, at most 60 characters."""
    if isinstance(found, Missing | Said):
        return repr(found)
    try:
        text = json.dumps(found, default=repr)
    except (ValueError, TypeError, RecursionError):
        return "an integer of thousands of digits" if isinstance(found, int) else "a value no JSON file can hold"
    return text if len(text) <= 60 else f"{text[:56]} ..."


class Said:
    """Words of our own in the place of a found value: shown without quotes."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __repr__(self) -> str:
        return self.words


def fact(
    spots: Sequence[Spot], parse: Callable[[Any], T | None], *, expected: str, blank: T, absent: Absent[T] | None
) -> T:
    """One fact that may be spelled at several spots, which must agree.

    `parse` gives None for a value it refuses. After a fault the result is `blank`, so
    that reading can go on and collect the rest; `Ledger.is_sound` tells.
    """
    ledger = spots[0].section.ledger
    spelled: list[tuple[Spot, T]] = []
    for spot in spots:
        raw = spot.section.take(spot.key)
        if isinstance(raw, Missing):
            continue
        value = parse(raw)
        if value is None:
            ledger.fault(spot.path, found=raw, expected=expected)
            ledger.unsound.add(spots[0].path)
        else:
            spelled.append((spot, value))
    if spots[0].path in ledger.unsound:
        return blank
    if not spelled:
        return _absent(spots[0], expected, blank, absent)
    first, value = spelled[0]
    for spot, other in spelled[1:]:
        if other != value:
            ledger.fault(spot.path, found=spot.section.take(spot.key), expected=f"what {first.path} says")
            ledger.unsound.add(spots[0].path)
    return value


def _absent(spot: Spot, expected: str, blank: T, absent: Absent[T] | None) -> T:
    ledger = spot.section.ledger
    if absent is None:
        ledger.fault(spot.path, found=MISSING, expected=expected)
        return blank
    ledger.assumed.append(Assumption(spot.path, absent.meaning, absent.source))
    return absent.value


def integer(*spots: Spot, minimum: int = 1, maximum: int = MAX_INTEGER, absent: Absent[int] | None = None) -> int:
    """An integer in `minimum` to `maximum`; no bool, float or string passes for one."""

    def parse(raw: Any) -> int | None:
        whole = isinstance(raw, int) and not isinstance(raw, bool)
        return raw if whole and minimum <= raw <= maximum else None

    kind = {0: "an integer, 0 or more", 1: "a positive integer"}.get(minimum, f"an integer, {minimum} or more")
    expected = kind if maximum == MAX_INTEGER else f"an integer from {minimum} to {maximum}"
    return fact(spots, parse, expected=expected, blank=minimum, absent=absent)


def number(*spots: Spot, absent: Absent[float] | None = None) -> float:
    """A finite number."""

    def parse(raw: Any) -> float | None:
        is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
        return float(raw) if is_number and abs(raw) <= sys.float_info.max else None

    return fact(spots, parse, expected="a finite number", blank=0.0, absent=absent)


def flag(*spots: Spot, absent: Absent[bool] | None = None) -> bool:
    """true or false."""
    return fact(
        spots,
        lambda raw: raw if isinstance(raw, bool) else None,
        expected="true or false",
        blank=False,
        absent=absent,
    )


def word(*spots: Spot, meanings: Mapping[str, T], absent: Absent[T] | None = None) -> T:
    """One of the words of `meanings`, as what it means."""
    return fact(
        spots,
        lambda raw: meanings.get(raw) if isinstance(raw, str) else None,
        expected=f"one of {', '.join(meanings)}",
        blank=next(iter(meanings.values())),
        absent=absent,
    )


def words(spot: Spot, *, meanings: Mapping[str, T], length: int) -> tuple[T, ...] | None:
    """A list of `length` words as what they mean; None when it is absent or at fault.

    Each unknown word is a fault of its own, at `key[index]`.
    """
    ledger = spot.section.ledger
    raw = spot.section.take(spot.key)
    if isinstance(raw, Missing):
        return None
    if not isinstance(raw, list | tuple) or len(raw) != length:
        found = Said(f"a list of {len(raw)}") if isinstance(raw, list | tuple) else raw
        ledger.fault(spot.path, found=found, expected=f"a list of {length} words")
        return None
    for index, item in enumerate(raw):
        if not isinstance(item, str) or item not in meanings:
            ledger.fault(f"{spot.path}[{index}]", found=item, expected=f"one of {', '.join(meanings)}")
            ledger.unsound.add(spot.path)
    return tuple(meanings[item] for item in raw) if ledger.is_sound(spot) else None


def indices(spot: Spot, *, start: int, stop: int) -> tuple[int, ...] | None:
    """A list of distinct integers in `[start, stop)`; None when it is absent or at fault."""
    ledger = spot.section.ledger
    raw = spot.section.take(spot.key)
    if isinstance(raw, Missing):
        return None
    if not isinstance(raw, list | tuple):
        ledger.fault(spot.path, found=raw, expected="a list of layer indices")
        return None
    seen: set[int] = set()
    for place, item in enumerate(raw):
        if not isinstance(item, int) or isinstance(item, bool) or not start <= item < stop or item in seen:
            expected = f"a layer index from {start} to {stop - 1}, each once"
            ledger.fault(f"{spot.path}[{place}]", found=item, expected=expected)
            ledger.unsound.add(spot.path)
        else:
            seen.add(item)
    return tuple(raw) if ledger.is_sound(spot) else None


def unread_paths(values: Mapping[str, Any], read: set[str], path: str = "") -> Iterator[str]:
    """Dotted paths of the keys nobody read, in file order; a null states nothing and is no key."""
    open_sections = [(path, iter(values.items()))]
    while open_sections:
        stem, items = open_sections[-1]
        for key, value in items:
            here = f"{stem}.{key}" if stem else key
            if here in read or value is None:
                continue
            if isinstance(value, Mapping) and value:
                open_sections.append((here, iter(value.items())))
                break
            yield here
        else:
            open_sections.pop()
