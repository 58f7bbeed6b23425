"""`ModelConfig`: what the typed config of every family has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from modelbones.config import Absent, Assumption, Section, flag, integer, unread_paths, word
from modelbones.dtypes import BY_CONFIG_NAME, DType

C = TypeVar("C", bound="ModelConfig")

_DTYPE_WORDS = {spelled: dtype for name, dtype in BY_CONFIG_NAME.items() for spelled in (name, f"torch.{name}")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a config says beside its sizes.

    Attributes:
        place: The file it was read from, or "<mapping>".
        model_type: The top-level word.
        architectures: Class names, as written.
        quantization: What speaks of quantisation, raw: (dotted path, object) each.
        assumed: Absent keys that were given their declared meaning.
        unread: Dotted paths of keys no one read, in file order.
        raw: The whole config as it was read.
    """

    place: str
    model_type: str
    architectures: tuple[str, ...]
    quantization: tuple[tuple[str, Mapping[str, Any]], ...]
    assumed: tuple[Assumption, ...]
    unread: tuple[str, ...]
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A config after it was read: every family's own extends it.

    Attributes:
        declared: What the file says beside the sizes.
        dtype: The type matrices are stored in when they are not quantised.
        tie_word_embeddings: Whether the head is the embedding.
        max_position_embeddings: Longest context in tokens; None when the config names none.
    """

    declared: Declared
    dtype: DType
    tie_word_embeddings: bool
    max_position_embeddings: int | None

    @property
    def model_type(self) -> str:
        """The top-level `model_type`."""
        return self.declared.model_type


def declared_by(top: Section, *sections: Section) -> Declared:
    """What `top` and the sections below it say; call it last, when every key was read."""
    ledger = top.ledger
    ledger.read.update(("model_type", "architectures", "transformers_version"))
    quantization: dict[str, Mapping[str, Any]] = {}
    for section in (top, *sections):
        ledger.read.add(section.path_of("model_type"))
        for key in ("quantization_config", "quantization"):
            ledger.read.add(section.path_of(key))
            words = section.section(key)
            # MLX writes the same object under both keys.
            if words is not None and words.values not in quantization.values():
                quantization[section.path_of(key)] = words.values
    architectures = top.values.get("architectures")
    return Declared(
        place=ledger.place,
        model_type=str(top.values.get("model_type")),
        architectures=tuple(architectures) if isinstance(architectures, list) else (),
        quantization=tuple(quantization.items()),
        assumed=tuple(ledger.assumed),
        unread=tuple(unread_paths(top.values, ledger.read)),
        raw=top.values,
    )


def stored_dtype(*sections: Section) -> DType:
    """`dtype` or `torch_dtype` of the last of the sections that has one, innermost first; absent means bfloat16.

    Saving a model in another type writes that at top level, and leaves what the text section
    said before. Source: transformers 5.23 modeling_utils.py::PreTrainedModel.save_pretrained.
    """
    keys = ("dtype", "torch_dtype")
    meaning = Absent(
        value=DType.BF16,
        meaning="bfloat16: matrices are sized as the published release stores them",
        source="the published checkpoint's headers",
    )
    naming = [section for section in sections if any(section.has(key) for key in keys)] or sections[:1]
    said = [word(*(section.at(key) for key in keys), meanings=_DTYPE_WORDS, absent=meaning) for section in naming]
    return said[-1]


def tied(*sections: Section, source: str) -> bool:
    """`tie_word_embeddings`, in any of the sections; absent means a head of its own."""
    meaning = Absent(value=False, meaning="false: the head is a tensor of its own", source=source)
    return flag(*(section.at("tie_word_embeddings") for section in sections), absent=meaning)


def concluded(
    kind: Callable[..., C],
    top: Section,
    text: Section,
    /,
    *,
    source: str,
    longest: tuple[str, ...] = ("max_position_embeddings",),
    **fields: Any,
) -> C:
    """The typed config `kind` of `fields` and of what every config says; raises every fault first.

    `text` is `top` itself where the text sizes stand at top level; `longest` are the
    spellings of the longest context, which may be absent.
    """
    sections = (text,) if text is top else (text, top)
    spots = [text.at(key) for key in longest]
    shared = {
        "dtype": stored_dtype(*sections),
        "tie_word_embeddings": tied(*sections, source=source),
        "max_position_embeddings": integer(*spots) if any(text.has(key) for key in longest) else None,
    }
    declared = declared_by(top, *sections[:-1])
    top.ledger.raise_faults()
    return kind(declared=declared, **shared, **fields)
