"""Find where an answer turns from yes to no."""

from __future__ import annotations

from collections.abc import Callable


def last_true(holds: Callable[[int], bool], most: int) -> int:
    """The largest number from 1 to `most` for which `holds`, 0 when it holds for none.

    `holds` changes once, from true to false.
    """
    if most > 0 and holds(most):
        return most
    low, high = 0, most - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
