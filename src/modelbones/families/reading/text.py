"""The sizes every text model has, and the MTP layers it declares."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, integer

MAX_LAYERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSizes:
    """The sizes of a text model, in the words of its config."""

    hidden_size: int
    vocab_size: int
    intermediate_size: int
    num_hidden_layers: int


def read_text(text: Section) -> TextSizes:
    """Every size is required. After a fault there are no layers, so that nothing is read of them."""
    spot = text.at("num_hidden_layers")
    num_layers = integer(spot, maximum=MAX_LAYERS)
    return TextSizes(
        hidden_size=integer(text.at("hidden_size")),
        vocab_size=integer(text.at("vocab_size")),
        intermediate_size=integer(text.at("intermediate_size")),
        num_hidden_layers=num_layers if text.ledger.is_sound(spot) else 0,
    )


def mtp_layers(text: Section) -> int:
    """`num_nextn_predict_layers`, 0 or 1; what is stored decides when it is absent."""
    none = Absent(value=0, meaning="0: no MTP layer is declared", source="what is stored decides in `check`")
    spot = text.at("num_nextn_predict_layers")
    declared = integer(spot, minimum=0, absent=none)
    if declared > 1:
        text.ledger.fault(spot.path, found=declared, expected="0 or 1 MTP layers")
    return declared
