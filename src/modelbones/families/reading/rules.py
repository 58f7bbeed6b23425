"""What a key that states no fact of its own must say: it repeats another, or the architecture fixes it."""

from __future__ import annotations

from modelbones.config import Said, Spot, flag, integer


def must_equal(spot: Spot, size: int, what: str) -> None:
    """A key that only repeats another fact: absent is fine, another value is a fault."""
    if spot.section.has(spot.key):
        value = integer(spot)
        ledger = spot.section.ledger
        if ledger.is_sound(spot) and value != size:
            ledger.fault(spot.path, found=value, expected=f"{what}, {size}")


def must_be_true(spot: Spot, why: str) -> None:
    """A flag that the architecture fixes: absent is fine, false is a fault."""
    if spot.section.has(spot.key) and not flag(spot) and spot.section.ledger.is_sound(spot):
        spot.section.ledger.fault(spot.path, found=Said("false"), expected=f"true: {why}")


def must_be_false(spot: Spot, why: str) -> None:
    """A flag that the architecture leaves off: absent is fine, true is a fault."""
    if spot.section.has(spot.key) and flag(spot):
        spot.section.ledger.fault(spot.path, found=Said("true"), expected=f"false: {why}")


def layers_text(listed: list[int]) -> str:
    """Some layers for a message: "layer 3", "layers 1, 2, 5 and 4 more"."""
    noun = "layer" if len(listed) == 1 else "layers"
    more = f" and {len(listed) - 6} more" if len(listed) > 6 else ""
    return f"{noun} {', '.join(str(index) for index in listed[:6])}{more}"
