"""The whole corpus, and where we and the safetensors package disagree on it, with the reason."""

from __future__ import annotations

from tests.checkpoint.corpus_entries import KEYS, LAYOUT, VALUES
from tests.checkpoint.corpus_frame import FRAME, TEXT

CORPUS = (*FRAME, *TEXT, *KEYS, *VALUES, *LAYOUT)

DIFFERENCES = {
    "space before the brace": "the format asks for { at the first byte; the package does not look",
    "a name twice": "the package keeps the last silently: one of the two was meant to be loaded",
    "a name twice, once escaped": "as above; the two spellings are one name",
    "an unknown key twice": "one rule for every object: a key stands once",
    "metadata with a key twice": "one rule for every object: a key stands once",
    "metadata that is null": "the format says a map of strings; only the package takes null for absent",
    "an entry that is a list": "its JSON library also takes an object's values in order; other readers do not",
    "a dtype that is an object": "its JSON library also takes {name: null} for an enum; other readers do not",
    "a dimension of 2**63": "no more than 2**63 - 1 elements fit any reader's signed sizes",
    "an offset of -0": "the package reads -0 as a float; it is the integer 0",
}
