"""The keys of a stack of Gated DeltaNet and gated attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.periods import full_every
from modelbones.families.reading.routing import is_named, num_mtp
from modelbones.families.reading.rules import must_be_true
from modelbones.parts.attention import AttentionSizes
from modelbones.parts.gdn import GdnSizes
from modelbones.skeleton import Mixer

_WIDTHS = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaNetConfig(DecoderConfig):
    """The config of such a stack; `mtp_is_declared` is whether a key says if an MTP module is stored."""

    attention: AttentionSizes
    attention_bias: bool
    gdn: GdnSizes
    mixers: tuple[Mixer, ...]
    num_mtp: int
    mtp_is_declared: bool


def gdn_sizes(text: Section, hidden_size: int) -> GdnSizes:
    """Every width is required; value heads come in whole groups of a key head."""
    sizes = {key: integer(text.at(key)) for key in _WIDTHS}
    keys, values = text.at("linear_num_key_heads"), text.at("linear_num_value_heads")
    if text.ledger.is_sound(keys, values) and sizes[values.key] % sizes[keys.key]:
        expected = f"a multiple of {keys.key}, {sizes[keys.key]}"
        text.ledger.fault(values.path, found=sizes[values.key], expected=expected)
    return GdnSizes(hidden_size=hidden_size, **sizes)


def deltanet_facts(*sections: Section, source: str, mtp_keys: tuple[str, ...]) -> dict[str, Any]:
    """Every field of `DeltaNetConfig` but `declared`; the text sizes are in the first of `sections`.

    Releases store an MTP module that their config does not name, so an absent key means one that
    may be left out. Source: llama.cpp conversion/qwen.py::_QwenMtpMixin.
    """
    text = sections[0]
    num_layers = count_layers(text)
    facts = around(*sections, source=source)
    no_bias = Absent(value=False, meaning="false: no projection has one", source=source)
    one = Absent(value=1, meaning="1, which a release may leave out whole", source="llama.cpp conversion/qwen.py")
    must_be_true(text.at("attn_output_gate"), "the query projection holds a gate for each head")
    return {
        **facts,
        "vocab_size": integer(text.at("vocab_size")),
        "num_hidden_layers": num_layers,
        "attention": head_sizes(text, facts["hidden_size"], source=source),
        "attention_bias": flag(text.at("attention_bias"), absent=no_bias),
        "gdn": gdn_sizes(text, facts["hidden_size"]),
        "mixers": full_every(
            text, num_layers, keys=("full_attention_interval",), other=("linear_attention", Mixer.GDN)
        ),
        "num_mtp": num_mtp(text, *mtp_keys, absent=one),
        "mtp_is_declared": is_named(text, *mtp_keys),
    }
