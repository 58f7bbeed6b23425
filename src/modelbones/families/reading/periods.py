"""Which layers attend to everything: a word a layer, or every so many-th one."""

from __future__ import annotations

from modelbones.config import Absent, Said, Section, integer, words
from modelbones.families.reading.rules import layers_text
from modelbones.skeleton import Mixer

FULL = "full_attention"


def full_every(
    text: Section,
    num_layers: int,
    *,
    keys: tuple[str, ...],
    other: tuple[str, Mixer],
    absent: Absent[int] | None = None,
) -> tuple[Mixer, ...]:
    """The mixer of each layer, from `layer_types` and from a period under one of `keys`.

    With period n the layers n - 1, 2n - 1, ... attend fully and every other one is `other`, a word and
    its mixer. `absent` is the period that stands for both when neither is there. Empty after a fault.
    """
    ledger, types = text.ledger, text.at("layer_types")
    named = words(types, meanings={FULL: Mixer.ATTENTION, other[0]: other[1]}, length=num_layers)
    spots = tuple(text.at(key) for key in keys)
    if not ledger.is_sound(types):
        return ()
    if not any(text.has(key) for key in keys):
        if named is not None:
            return named
        if absent is None:
            expected = f"a list of {num_layers} words, or {keys[0]}"
            ledger.fault(types.path, found=Said("missing"), expected=expected)
            return ()
        # Nothing is spelled, so this only notes what that means, at the key that would say it.
        return _by_period(integer(spots[0] if spots else types, absent=absent), num_layers, other[1])
    period = integer(*spots)
    if not ledger.is_sound(*spots):
        return ()
    counted = _by_period(period, num_layers, other[1])
    clashes = [] if named is None else [i for i in range(num_layers) if named[i] is not counted[i]]
    if clashes:
        found = Said(f"another word for {layers_text(clashes)}")
        ledger.fault(types.path, found=found, expected=f"what {spots[0].path} says, {period}")
    return counted


def _by_period(period: int, num_layers: int, other: Mixer) -> tuple[Mixer, ...]:
    return tuple(other if (index + 1) % period else Mixer.ATTENTION for index in range(num_layers))
