"""Which of two mixers each layer has, from words a layer and from lists of layer numbers.

One fact in two spellings must agree; engines pick one and go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modelbones.config import Said, Section, Spot, indices, words
from modelbones.families.reading.rules import layers_text
from modelbones.skeleton import Mixer

LINEAR_WORDS = {
    "linear_attention": Mixer.KDA,
    "mamba": Mixer.KDA,
}
"""What configs call a KDA layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedLists:
    """Two lists of `linear_attn_config` that name the layers of each kind.

    Attributes:
        section: `linear_attn_config`, or an empty section in its place.
        full: The mixer that `full_attn_layers` names.
        start: The number of the first layer in these lists, 0 or 1.
    """

    section: Section
    full: Mixer
    start: int = 0

    @property
    def spots(self) -> dict[Mixer, Spot]:
        """The spot of each mixer's list."""
        return {Mixer.KDA: self.section.at("kda_layers"), self.full: self.section.at("full_attn_layers")}


def mixers(text: Section, lists: NumberedLists, num_layers: int, meanings: Mapping[str, Mixer]) -> tuple[Mixer, ...]:
    """The mixer of each layer, from `layer_types` and the numbered lists; empty after a fault."""
    ledger, types = text.ledger, text.at("layer_types")
    named = words(types, meanings=meanings, length=num_layers)
    spots = lists.spots
    listed = {m: indices(spot, start=lists.start, stop=num_layers + lists.start) for m, spot in spots.items()}
    if not ledger.is_sound(types, *spots.values()):
        return ()
    if named is None and None in listed.values():
        missing = next((spots[m] for m in spots if not listed[m]), types) if any(listed.values()) else types
        expected = f"a list of {num_layers} layer words, or both index lists of linear_attn_config"
        ledger.fault(missing.path, found=Said("missing"), expected=expected)
        return ()
    if None not in listed.values():
        _check_cover(lists, listed, num_layers)
    if not ledger.is_sound(*spots.values()):
        return ()
    if named is None:
        by_index = {number - lists.start: mixer for mixer, numbers in listed.items() for number in numbers or ()}
        return tuple(by_index[index] for index in range(num_layers))
    for mixer, numbers in listed.items():
        if numbers is not None:
            _check_words(lists, mixer, set(numbers), named)
    return named


def _check_words(lists: NumberedLists, mixer: Mixer, listed: set[int], named: tuple[Mixer, ...]) -> None:
    """A list that is there names all layers of its kind and no other."""
    said = {index + lists.start for index, word in enumerate(named) if word is mixer}
    spot, expected = lists.spots[mixer], "the layers that layer_types calls so"
    if listed - said:
        spot.section.ledger.fault(spot.path, found=Said(layers_text(sorted(listed - said))), expected=expected)
    if said - listed:
        left_out = Said(f"{layers_text(sorted(said - listed))} left out")
        spot.section.ledger.fault(spot.path, found=left_out, expected=expected)


def _check_cover(lists: NumberedLists, listed: Mapping[Mixer, tuple[int, ...] | None], num_layers: int) -> None:
    kda, full = lists.spots.values()
    recurrent, attending = (set(numbers or ()) for numbers in listed.values())
    ledger, last = kda.section.ledger, num_layers + lists.start - 1
    both = sorted(recurrent & attending)
    if both:
        expected = f"no layer that {kda.path} names too"
        ledger.fault(full.path, found=Said(layers_text(both)), expected=expected)
    neither = sorted(set(range(lists.start, last + 1)) - recurrent - attending)
    if neither:
        expected = f"every layer from {lists.start} to {last} in {kda.path} or {full.path}"
        ledger.fault(kda.path, found=Said(f"neither for {layers_text(neither)}"), expected=expected)
