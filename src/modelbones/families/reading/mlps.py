"""Which MLP each layer has: a word a layer, or so many dense ones first."""

from __future__ import annotations

from modelbones.config import Absent, Said, Section, integer, words
from modelbones.families.reading.rules import layers_text
from modelbones.skeleton import Mlp

MLP_WORDS = {"dense": Mlp.DENSE, "sparse": Mlp.ROUTED_MOE}


def mlps(text: Section, num_layers: int, *, every: int = 1) -> tuple[Mlp, ...]:
    """The MLP of each text layer, from `mlp_layer_types` and `first_k_dense_replace`.

    Of the layers that are not dense by `first_k_dense_replace`, those whose index is a
    multiple of `every` are routed.
    """
    types, first_k = text.at("mlp_layer_types"), text.at("first_k_dense_replace")
    named = words(types, meanings=MLP_WORDS, length=num_layers)
    if not text.has(first_k.key):
        if named is None and text.ledger.is_sound(types):
            expected = f"a list of {num_layers} words, or first_k_dense_replace"
            text.ledger.fault(types.path, found=Said("missing"), expected=expected)
        return named or ()
    num_dense = integer(first_k, minimum=0, maximum=num_layers)
    if not text.ledger.is_sound(first_k, types):
        return ()
    counted = tuple(Mlp.DENSE if i < num_dense or i % every else Mlp.ROUTED_MOE for i in range(num_layers))
    if named is not None and named != counted:
        clashes = [index for index in range(num_layers) if named[index] is not counted[index]]
        expected = f"dense on the first {num_dense} layers only, as {first_k.path} says"
        text.ledger.fault(types.path, found=Said(layers_text(clashes)), expected=expected)
    return counted


def routed_every(text: Section, *, source: str) -> int:
    """`moe_layer_freq`: one layer in so many is routed; absent means each."""
    each = Absent(value=1, meaning="1: every layer after the dense ones is routed", source=source)
    return integer(text.at("moe_layer_freq"), absent=each)
