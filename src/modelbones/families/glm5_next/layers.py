"""Which mixer, MLP and indexer each `glm5_next` layer has, from every spelling of it.

One fact in two spellings must agree; engines pick one and go on.
"""

from __future__ import annotations

from modelbones.config import Absent, Said, Section, Spot, fact, indices, integer, words
from modelbones.skeleton import Mixer, Mlp

MIXER_WORDS = {
    "linear_attention": Mixer.KDA,
    "mamba": Mixer.KDA,
    "deepseek_sparse_attention": Mixer.DSA,
    "indexed_attention": Mixer.DSA,
    "sparse_attention": Mixer.DSA,
    "full_attention": Mixer.DSA,
    "attention": Mixer.DSA,
}
MLP_WORDS = {"dense": Mlp.DENSE, "sparse": Mlp.ROUTED_MOE}
INDEXER_WORDS = {"full": True, "shared": False}
INDEXER_LETTERS = {"F": True, "S": False}
_SOURCE = "transformers 5.23 configuration_glm5_next.py"


def mixers(text: Section, linear: Section, num_layers: int) -> tuple[Mixer, ...]:
    """The mixer of each text layer, from `layer_types` and the 0-based index lists."""
    ledger = text.ledger
    types, kda, full = text.at("layer_types"), linear.at("kda_layers"), linear.at("full_attn_layers")
    named = words(types, meanings=MIXER_WORDS, length=num_layers)
    lists = {
        Mixer.KDA: indices(kda, start=0, stop=num_layers),
        Mixer.DSA: indices(full, start=0, stop=num_layers),
    }
    if not ledger.is_sound(types, kda, full):
        return ()
    if named is None and None in lists.values():
        has_neither = not any(lists.values())
        missing = types if has_neither else next(s for s, m in ((kda, Mixer.KDA), (full, Mixer.DSA)) if not lists[m])
        expected = f"a list of {num_layers} layer words, or both index lists of linear_attn_config"
        ledger.fault(missing.path, found=Said("missing"), expected=expected)
        return ()
    listed = _by_index(lists)
    if None not in lists.values():
        _check_cover(kda, full, lists[Mixer.KDA] or (), lists[Mixer.DSA] or (), num_layers)
    if not ledger.is_sound(kda, full):
        return ()
    if named is None:
        return tuple(listed[index] for index in range(num_layers))
    clashes = [index for index, mixer in listed.items() if named[index] is not mixer]
    if clashes:
        spot = kda if listed[clashes[0]] is Mixer.KDA else full
        expected = "the layers that layer_types calls so"
        ledger.fault(spot.path, found=Said(_layers(clashes)), expected=expected)
    return named


def _by_index(lists: dict[Mixer, tuple[int, ...] | None]) -> dict[int, Mixer]:
    return {index: mixer for mixer, listed in lists.items() for index in listed or ()}


def _check_cover(kda: Spot, full: Spot, recurrent: tuple[int, ...], sparse: tuple[int, ...], num_layers: int) -> None:
    both = sorted(set(recurrent) & set(sparse))
    if both:
        expected = f"no layer that {kda.path} names too"
        kda.section.ledger.fault(full.path, found=Said(_layers(both)), expected=expected)
    neither = sorted(set(range(num_layers)) - set(recurrent) - set(sparse))
    if neither:
        expected = f"every layer from 0 to {num_layers - 1} in {kda.path} or {full.path}"
        kda.section.ledger.fault(kda.path, found=Said(f"neither for {_layers(neither)}"), expected=expected)


def mlps(text: Section, num_layers: int) -> tuple[Mlp, ...]:
    """The MLP of each text layer, from `mlp_layer_types` and `first_k_dense_replace`."""
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
    counted = tuple(Mlp.DENSE if index < num_dense else Mlp.ROUTED_MOE for index in range(num_layers))
    if named is not None and named != counted:
        clashes = [index for index in range(num_layers) if named[index] is not counted[index]]
        expected = f"dense on the first {num_dense} layers only, as {first_k.path} says"
        text.ledger.fault(types.path, found=Said(_layers(clashes)), expected=expected)
    return counted


def runs_indexer(text: Section, layer_mixers: tuple[Mixer, ...]) -> tuple[bool, ...]:
    """Whether each layer runs an indexer of its own; the others use an earlier selection.

    Only sparse layers have one. `indexer_types`, `index_topk_pattern` and
    `index_topk_freq` with `index_skip_topk_offset` spell the same fact.
    """
    num_layers = len(layer_mixers)
    spelled = [
        (text.at("indexer_types"), words(text.at("indexer_types"), meanings=INDEXER_WORDS, length=num_layers)),
        (text.at("index_topk_pattern"), _pattern(text.at("index_topk_pattern"), num_layers)),
        (text.at("index_topk_freq"), _every(text, num_layers)),
    ]
    known = [(spot, runs) for spot, runs in spelled if runs is not None]
    if not text.ledger.is_sound(*(spot for spot, _ in spelled), text.at("index_skip_topk_offset")):
        return ()
    if not known:
        _assume_all_full(text)
        known = [(text.at("indexer_types"), (True,) * num_layers)]
    first, runs = known[0]
    for spot, other in known[1:]:
        clashes = [i for i, mixer in enumerate(layer_mixers) if mixer is Mixer.DSA and runs[i] is not other[i]]
        if clashes:
            text.ledger.fault(spot.path, found=Said(_layers(clashes)), expected=f"what {first.path} says")
    sparse = [index for index, mixer in enumerate(layer_mixers) if mixer is Mixer.DSA]
    if sparse and not runs[sparse[0]]:
        expected = "full on the first sparse layer: there is no earlier selection to share"
        text.ledger.fault(first.path, found=Said(f"shared on layer {sparse[0]}"), expected=expected)
    return tuple(mixer is Mixer.DSA and runs[index] for index, mixer in enumerate(layer_mixers))


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


def _every(text: Section, num_layers: int) -> tuple[bool, ...] | None:
    """`index_topk_freq`: after `index_skip_topk_offset` layers, one in so many runs its own."""
    if not text.has("index_topk_freq"):
        return None
    freq = integer(text.at("index_topk_freq"))
    two = Absent(value=2, meaning="2: the first layers run their own indexer", source=_SOURCE)
    offset = integer(text.at("index_skip_topk_offset"), minimum=0, absent=two)
    return tuple(max(index - offset + 1, 0) % freq == 0 for index in range(num_layers))


def _assume_all_full(text: Section) -> None:
    absent = Absent(value=True, meaning="full on every sparse layer: each runs its own indexer", source=_SOURCE)
    fact([text.at("indexer_types")], lambda raw: None, expected="", blank=True, absent=absent)


def _layers(listed: list[int]) -> str:
    noun = "layer" if len(listed) == 1 else "layers"
    more = f" and {len(listed) - 6} more" if len(listed) > 6 else ""
    return f"{noun} {', '.join(str(index) for index in listed[:6])}{more}"
