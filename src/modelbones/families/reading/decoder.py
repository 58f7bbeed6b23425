"""What every decoder's config says around its layers, and how a reading ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from modelbones.config import MISSING, Absent, Section, flag, integer
from modelbones.families.model_config import ModelConfig, declared_by, stored_dtype
from modelbones.families.reading.text import MAX_LAYERS


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig(ModelConfig):
    """The config of a decoder stack; a family's own adds what its layers are made of.

    Attributes:
        hidden_size: Width of the residual stream.
        vocab_size: Rows of the embedding.
        num_hidden_layers: Layers of the text stack.
    """

    hidden_size: int
    vocab_size: int
    num_hidden_layers: int


C = TypeVar("C", bound=DecoderConfig)


def text_section(top: Section, *text_types: str) -> Section:
    """`text_config` of a wrapper config; its absence is a fault, as is another model's."""
    text = top.section("text_config")
    if text is None:
        if not top.has("text_config"):
            top.ledger.fault("text_config", found=MISSING, expected="an object with the sizes of the text model")
        top.ledger.raise_faults()
        return top
    named = text.values.get("model_type")
    if named is not None and named not in text_types:
        expected = " or ".join(f'"{text_type}"' for text_type in text_types)
        top.ledger.fault(text.path_of("model_type"), found=named, expected=expected)
    return text


def around(*sections: Section, source: str, ties: bool = False) -> dict[str, Any]:
    """Widths, dtype, tied head and context; the text sizes are in the first of `sections`.

    `ties` is what an absent `tie_word_embeddings` means, and `source` says so.
    """
    text = sections[0]
    meaning = "true: the head is the embedding" if ties else "false: the head is a tensor of its own"
    tie = Absent(value=ties, meaning=meaning, source=source)
    longest = text.at("max_position_embeddings")
    return {
        "hidden_size": integer(text.at("hidden_size")),
        "dtype": stored_dtype(*sections),
        "tie_word_embeddings": flag(*(section.at("tie_word_embeddings") for section in sections), absent=tie),
        "max_position_embeddings": integer(longest) if text.has(longest.key) else None,
    }


def count_layers(text: Section) -> int:
    """`num_hidden_layers`; 0 after a fault, so that no list is held against a wrong count."""
    spot = text.at("num_hidden_layers")
    num_layers = integer(spot, maximum=MAX_LAYERS)
    return num_layers if text.ledger.is_sound(spot) else 0


def finish(kind: type[C], top: Section, *sections: Section, **facts: Any) -> C:
    """The typed config once every key was read; everything wrong with it is raised at once."""
    declared = declared_by(top, *sections)
    top.ledger.raise_faults()
    return kind(declared=declared, **facts)
