"""Sliding windows: how wide, and on which layers."""

from __future__ import annotations

from modelbones.config import MISSING, Absent, Said, Section, flag, integer, words
from modelbones.families.reading.periods import FULL
from modelbones.families.reading.rules import layers_text
from modelbones.skeleton import Mixer

SLIDING = "sliding_attention"


def window_or_null(text: Section) -> int | None:
    """`sliding_window`: tokens, or null for none; libraries fill an absent key with a window of their own."""
    spot = text.at("sliding_window")
    if text.has(spot.key):
        return integer(spot)
    text.take(spot.key)
    if spot.key not in text.values:
        text.ledger.fault(spot.path, found=MISSING, expected="a window in tokens, or null for none")
    return None


def switched_windows(text: Section, num_layers: int, *, source: str) -> tuple[tuple[Mixer, ...], int | None]:
    """The mixer of each layer and the window, where `use_sliding_window` turns windows on.

    Windows stand on the layers from `max_window_layers` up; `layer_types` must agree. Source of the
    rule: transformers 5.23 configuration_qwen2.py. Empty after a fault.
    """
    off = Absent(value=False, meaning="false: every layer attends to all tokens", source=source)
    switch, width, first = (text.at(key) for key in ("use_sliding_window", "sliding_window", "max_window_layers"))
    is_on = flag(switch, absent=off)
    types = text.at("layer_types")
    named = words(types, meanings={FULL: Mixer.ATTENTION, SLIDING: Mixer.WINDOW}, length=num_layers)
    start = num_layers
    window = None
    if is_on:
        window, start = integer(width), integer(first, minimum=0)
    else:
        text.take(width.key)
        text.take(first.key)
    if not text.ledger.is_sound(switch, width, first, types):
        return (), None
    mixers = tuple(Mixer.ATTENTION if index < start else Mixer.WINDOW for index in range(num_layers))
    clashes = [] if named is None else [i for i in range(num_layers) if named[i] is not mixers[i]]
    if clashes:
        expected = f"{SLIDING} on the layers from max_window_layers up, and only with {switch.path}"
        text.ledger.fault(types.path, found=Said(f"another word for {layers_text(clashes)}"), expected=expected)
    return mixers, window


def same_on_every_layer(text: Section, num_layers: int, window: int | None) -> tuple[Mixer, ...]:
    """The mixer of each layer of a stack whose `window` stands on all of them; `layer_types` must agree."""
    mixer, word = (Mixer.ATTENTION, FULL) if window is None else (Mixer.WINDOW, SLIDING)
    types = text.at("layer_types")
    named = words(types, meanings={FULL: Mixer.ATTENTION, SLIDING: Mixer.WINDOW}, length=num_layers)
    clashes = [index for index, other in enumerate(named or ()) if other is not mixer]
    if clashes:
        found = Said(f"another word for {layers_text(clashes)}")
        text.ledger.fault(types.path, found=found, expected=f"{word} on every layer, as sliding_window says")
    return (mixer,) * num_layers
