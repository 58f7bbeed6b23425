"""Single-site layers: which one sublayer each has, from letters or words."""

from __future__ import annotations

from enum import Enum

from modelbones.config import Absent, Said, Section, Spot, fact, words
from modelbones.families.reading.routing import num_mtp
from modelbones.families.reading.rules import layers_text, must_equal
from modelbones.families.reading.text import MAX_LAYERS


class Block(Enum):
    """The one sublayer of a layer."""

    MAMBA = "mamba"
    ATTENTION = "attention"
    MLP = "mlp"
    MOE = "moe"


LETTERS = {"M": Block.MAMBA, "*": Block.ATTENTION, "-": Block.MLP, "E": Block.MOE}
WORDS = {
    "mamba": Block.MAMBA,
    "linear_attention": Block.MAMBA,
    "attention": Block.ATTENTION,
    "full_attention": Block.ATTENTION,
    "mlp": Block.MLP,
    "moe": Block.MOE,
}


def blocks(text: Section) -> tuple[Block, ...]:
    """The block of each layer; `num_hidden_layers` only repeats how many there are. Empty after a fault."""
    spelled = _spelled(text, "hybrid_override_pattern", ("layers_block_type", "layer_types"))
    if spelled:
        must_equal(text.at("num_hidden_layers"), len(spelled), "the layers of its pattern")
    return spelled


def mtp_blocks(text: Section) -> tuple[Block, ...]:
    """The blocks of the MTP module; empty when none is declared, or after a fault."""
    none = Absent(value=0, meaning="0: no MTP layer is declared", source="what is stored decides in `check`")
    is_declared = num_mtp(text, "num_nextn_predict_layers", absent=none)
    keys = ("mtp_hybrid_override_pattern", ("mtp_layers_block_type",))
    if is_declared:
        return _spelled(text, *keys)
    for key in (keys[0], *keys[1]):
        text.take(key)
    return ()


def _spelled(text: Section, letters: str, lists: tuple[str, ...]) -> tuple[Block, ...]:
    ledger = text.ledger
    known = [(text.at(letters), _letters(text.at(letters)))]
    known += [(text.at(key), _words(text.at(key))) for key in lists]
    if not ledger.is_sound(*(spot for spot, _ in known)):
        return ()
    read = [(spot, found) for spot, found in known if found]
    if not read:
        expected = f"letters of {' '.join(LETTERS)}, one a layer, or {lists[0]}"
        ledger.fault(known[0][0].path, found=Said("missing"), expected=expected)
        return ()
    first, found = read[0]
    for spot, other in read[1:]:
        clashes = [i for i, (ours, theirs) in enumerate(zip(found, other, strict=False)) if ours is not theirs]
        if clashes or len(found) != len(other):
            differs = f"another block for {layers_text(clashes)}" if clashes else f"{len(other)} layers"
            ledger.fault(spot.path, found=Said(differs), expected=f"what {first.path} says")
    return found


def _letters(spot: Spot) -> tuple[Block, ...]:
    if not spot.section.has(spot.key):
        return ()

    def parse(raw: object) -> tuple[Block, ...] | None:
        if not isinstance(raw, str) or not 0 < len(raw) <= MAX_LAYERS or not set(raw) <= set(LETTERS):
            return None
        return tuple(LETTERS[letter] for letter in raw)

    blank: tuple[Block, ...] = ()
    return fact([spot], parse, expected=f"letters of {' '.join(LETTERS)}, one a layer", blank=blank, absent=None)


def _words(spot: Spot) -> tuple[Block, ...]:
    raw = spot.section.values.get(spot.key)
    if isinstance(raw, list | tuple) and not raw:
        spot.section.ledger.fault(spot.path, found=Said("an empty list"), expected="a word for each layer")
        return ()
    length = len(raw) if isinstance(raw, list | tuple) else 1
    return words(spot, meanings=WORDS, length=length) or ()
