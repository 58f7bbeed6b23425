"""File names that count: which numbers of `model-00001-of-00003.safetensors` are not there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

_NUMBERED = re.compile(r"(.*?)(\d{3,9})-of-(\d{3,9})(\.safetensors)")
_COUNTED = re.compile(r"(.*?)(\d{3,9})(\.safetensors)")
MOST_LISTED = 100


class Run(NamedTuple):
    """Files numbered alike, with numbers missing.

    `absent` lists at most `MOST_LISTED` names of the `num_absent`.
    """

    pattern: str
    present: int
    num_absent: int
    absent: tuple[str, ...]


def absent_of_total(files: Iterable[str]) -> list[Run]:
    """Runs `name-NNNNN-of-TOTAL` that lack numbers from 1 to their total."""
    runs: dict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
    for file in files:
        if match := _NUMBERED.fullmatch(file):
            runs[match[1], match[3], match[4]][int(match[2])] = match[2]
    found = []
    for (stem, total, ending), numbers in sorted(runs.items()):
        width = len(next(iter(numbers.values())))
        tail = f"-of-{total}{ending}"
        run = _run(stem, tail, width, first=1, last=int(total), present=set(numbers))
        if run.num_absent:
            found.append(run)
    return found


def absent_inside(files: Iterable[str]) -> list[Run]:
    """Runs `name-NNNNN`, without a total, that skip numbers.

    They count from 0 if any run of the directory does, else from 1. A run with half its
    numbers missing counts something else (training steps), and is left alone.
    """
    runs: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for file in files:
        if (match := _COUNTED.fullmatch(file)) and not _NUMBERED.fullmatch(file):
            runs[match[1], match[3]][int(match[2])] = match[2]
    base = 0 if any(0 in numbers for numbers in runs.values()) else 1
    found = []
    for (stem, ending), numbers in sorted(runs.items()):
        width = len(next(iter(numbers.values())))
        run = _run(stem, ending, width, first=base, last=max(numbers), present=set(numbers))
        if 0 < run.num_absent < run.present:
            found.append(run)
    return found


def _run(stem: str, tail: str, width: int, *, first: int, last: int, present: set[int]) -> Run:
    inside = sum(first <= number <= last for number in present)
    absent = (number for number in range(first, last + 1) if number not in present)
    names = tuple(f"{stem}{number:0{width}}{tail}" for number in islice(absent, MOST_LISTED))
    return Run(f"{stem}{'N' * width}{tail}", inside, last - first + 1 - inside, names)
