"""DeepSeek-V4's widths, and its layers: a compression ratio or a word each, some with a table of experts."""

from __future__ import annotations

from modelbones.config import MISSING, Said, Section, integer, words
from modelbones.families.reading.rules import layers_text, must_equal
from modelbones.parts.compressed import CSA_POOL, HCA_POOL, CompressedSizes
from modelbones.skeleton import Mixer

RATIOS = {0: Mixer.WINDOW, CSA_POOL: Mixer.CSA, HCA_POOL: Mixer.HCA}
WORDS = {
    "sliding_attention": Mixer.WINDOW,
    "compressed_sparse_attention": Mixer.CSA,
    "heavily_compressed_attention": Mixer.HCA,
}
HASH_WORDS = {"hash_moe": True, "moe": False}

_WIDTHS = (
    "num_attention_heads",
    "head_dim",
    "q_lora_rank",
    "o_groups",
    "o_lora_rank",
    "sliding_window",
    "index_n_heads",
    "index_head_dim",
)


def read_compressed(text: Section, *, hidden_size: int) -> CompressedSizes:
    """The widths of the attention; every one is required."""
    widths = {name: integer(text.at(name)) for name in _WIDTHS}
    heads, groups = text.at("num_attention_heads"), text.at("o_groups")
    if text.ledger.is_sound(heads, groups) and widths["num_attention_heads"] % widths["o_groups"]:
        expected = f"a divisor of num_attention_heads, {widths['num_attention_heads']}"
        text.ledger.fault(groups.path, found=widths["o_groups"], expected=expected)
    must_equal(text.at("num_key_value_heads"), 1, "one row for all heads")
    integer(text.at("index_topk"))
    return CompressedSizes(hidden_size=hidden_size, **widths)


def mixers_by_ratio(text: Section, num_layers: int) -> tuple[Mixer, ...]:
    """The mixer of each layer, from `compress_ratios` and `layer_types`; empty after a fault.

    The list of ratios goes on with those of the draft layers, which keep only a window.
    """
    rates = text.section("compress_rates") or Section({}, text.path_of("compress_rates"), text.ledger)
    must_equal(rates.at("compressed_sparse_attention"), CSA_POOL, "the pool of this attention")
    must_equal(rates.at("heavily_compressed_attention"), HCA_POOL, "the pool of this attention")
    types, ratios = text.at("layer_types"), text.at("compress_ratios")
    named = words(types, meanings=WORDS, length=num_layers)
    listed = _ratios(text, num_layers)
    if not text.ledger.is_sound(types, ratios):
        return ()
    if named is None and listed is None:
        expected = f"a list of at least {num_layers} ratios, or layer_types"
        text.ledger.fault(ratios.path, found=MISSING, expected=expected)
        return ()
    if named is not None and listed is not None and named != listed:
        clashes = [index for index in range(num_layers) if named[index] is not listed[index]]
        text.ledger.fault(types.path, found=Said(layers_text(clashes)), expected=f"what {ratios.path} says")
    return listed or named or ()


def _ratios(text: Section, num_layers: int) -> tuple[Mixer, ...] | None:
    spot = text.at("compress_ratios")
    raw = text.take(spot.key)
    if raw is MISSING:
        return None
    if not isinstance(raw, list | tuple) or len(raw) < num_layers:
        found = Said(f"a list of {len(raw)}") if isinstance(raw, list | tuple) else raw
        text.ledger.fault(spot.path, found=found, expected=f"a list of at least {num_layers} ratios")
        return None
    for index, ratio in enumerate(raw):
        known = tuple(RATIOS) if index < num_layers else (0,)
        if type(ratio) is not int or ratio not in known:
            expected = f"one of {', '.join(map(str, known))}"
            text.ledger.fault(f"{spot.path}[{index}]", found=ratio, expected=expected)
            text.ledger.unsound.add(spot.path)
    return tuple(RATIOS[ratio] for ratio in raw[:num_layers]) if text.ledger.is_sound(spot) else None


def by_table(text: Section, num_layers: int) -> tuple[bool, ...]:
    """Whether each layer's experts are looked up by token, from `num_hash_layers` and `mlp_layer_types`."""
    types, first = text.at("mlp_layer_types"), text.at("num_hash_layers")
    named = words(types, meanings=HASH_WORDS, length=num_layers)
    if named is not None and not text.has(first.key):
        return named
    count = integer(first, minimum=0, maximum=num_layers)
    counted = tuple(index < count for index in range(num_layers))
    if text.ledger.is_sound(first, types) and named is not None and named != counted:
        text.ledger.fault(types.path, found=Said("other layers"), expected=f"hash_moe on the first {count}")
    return counted if text.ledger.is_sound(first, types) else ()
