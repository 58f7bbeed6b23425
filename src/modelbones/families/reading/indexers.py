"""Which sparse layers run an indexer of their own, and how wide it is.

`indexer_types`, `index_topk_pattern` and `index_topk_freq` with `index_skip_topk_offset`
spell the same fact. Source: transformers 5.23 configuration_glm_moe_dsa.py and
configuration_glm5_next.py.
"""

from __future__ import annotations

from modelbones.config import Absent, Said, Section, Spot, fact, integer, words
from modelbones.families.reading.rules import layers_text

INDEXER_WORDS = {"full": True, "shared": False}
INDEXER_LETTERS = {"F": True, "S": False}


def runs_indexer(text: Section, is_sparse: tuple[bool, ...], *, source: str) -> tuple[bool, ...]:
    """Whether each layer runs an indexer; other sparse layers use an earlier selection.

    Only sparse layers have one. Empty after a fault.
    """
    num_layers = len(is_sparse)
    spelled = [
        (text.at("indexer_types"), words(text.at("indexer_types"), meanings=INDEXER_WORDS, length=num_layers)),
        (text.at("index_topk_pattern"), _pattern(text.at("index_topk_pattern"), num_layers)),
        (text.at("index_topk_freq"), _every(text, num_layers, source)),
    ]
    known = [(spot, runs) for spot, runs in spelled if runs is not None]
    if not text.ledger.is_sound(*(spot for spot, _ in spelled), text.at("index_skip_topk_offset")):
        return ()
    if not known:
        _assume_all_full(text, source)
        known = [(text.at("indexer_types"), (True,) * num_layers)]
    first, runs = known[0]
    for spot, other in known[1:]:
        clashes = [i for i, sparse in enumerate(is_sparse) if sparse and runs[i] is not other[i]]
        if clashes:
            text.ledger.fault(spot.path, found=Said(layers_text(clashes)), expected=f"what {first.path} says")
    sparse = [index for index, sparse in enumerate(is_sparse) if sparse]
    if sparse and not runs[sparse[0]]:
        expected = "full on the first sparse layer: there is no earlier selection to share"
        text.ledger.fault(first.path, found=Said(f"shared on layer {sparse[0]}"), expected=expected)
    return tuple(sparse and runs[index] for index, sparse in enumerate(is_sparse))


def selection_of(runs: tuple[bool, ...], index: int) -> int | None:
    """The layer whose selection layer `index` uses: the last one up to it that runs an indexer."""
    return max((i for i in range(index + 1) if runs[i]), default=None)


def _pattern(spot: Spot, num_layers: int) -> tuple[bool, ...] | None:
    """`index_topk_pattern`: a string of F and S, or a list of the long words."""
    raw = spot.section.values.get(spot.key)
    if not isinstance(raw, str):
        return words(spot, meanings=INDEXER_WORDS, length=num_layers)

    def parse(text: str) -> tuple[bool, ...] | None:
        if len(text) != num_layers or not set(text) <= set(INDEXER_LETTERS):
            return None
        return tuple(INDEXER_LETTERS[letter] for letter in text)

    blank: tuple[bool, ...] = ()
    return fact([spot], parse, expected=f"{num_layers} letters F or S", blank=blank, absent=None)


def _every(text: Section, num_layers: int, source: str) -> tuple[bool, ...] | None:
    """`index_topk_freq`: after `index_skip_topk_offset` layers, one in so many runs its own."""
    if not text.has("index_topk_freq"):
        return None
    freq = integer(text.at("index_topk_freq"))
    two = Absent(value=2, meaning="2: the first layers run their own indexer", source=source)
    offset = integer(text.at("index_skip_topk_offset"), minimum=0, absent=two)
    return tuple(max(index - offset + 1, 0) % freq == 0 for index in range(num_layers))


def _assume_all_full(text: Section, source: str) -> None:
    absent = Absent(value=True, meaning="full on every sparse layer: each runs its own indexer", source=source)
    fact([text.at("indexer_types")], lambda raw: None, expected="", blank=True, absent=absent)
