"""Gemma 3: grouped attention with normed heads, five layers in a window for each full one, norms on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish, text_section
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.periods import full_every
from modelbones.families.reading.rules import must_be_false
from modelbones.families.reading.windows import SLIDING
from modelbones.families.stacks.decoder import decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.families.stacks.windowed import full_and_window
from modelbones.parts.attention import AttentionForm, AttentionSizes
from modelbones.parts.ends import sandwich_norms
from modelbones.parts.mlp import dense_mlp
from modelbones.skeleton import Mixer, Mlp, Skeleton
from modelbones.tensors import Group
from modelbones.wiring import SANDWICH

_SOURCE = "transformers 5.23 configuration_gemma3.py"
_TEXT_ONLY = "gemma3_text"
_PERIODS = ("sliding_window_pattern", "_sliding_window_pattern")
_TOWERS = ("vision_tower.", "multi_modal_projector.")


def _left_out(value: int, what: str) -> Absent[int]:
    """A size google/gemma-3-4b-it's own config leaves to the class."""
    return Absent(value=value, meaning=f"{value:,}: {what}", source=f"{_SOURCE}; google/gemma-3-4b-it config.json")


_HEADS = {
    "num_attention_heads": _left_out(8, "query heads"),
    "num_key_value_heads": _left_out(4, "key-value heads"),
    "head_dim": _left_out(256, "elements a head"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma3Config(DecoderConfig):
    """A `gemma3` or `gemma3_text` config; `mixers` holds one entry for each layer."""

    intermediate_size: int
    attention: AttentionSizes
    attention_bias: bool
    mixers: tuple[Mixer, ...]
    sliding_window: int


def read(top: Section) -> Gemma3Config:
    """The typed config of `top`; only a wrapper's sizes are under `text_config`."""
    is_text = top.values.get("model_type") == _TEXT_ONLY
    sections = (top,) if is_text else (text_section(top, _TEXT_ONLY), top)
    text = sections[0]
    facts = around(*sections, source=_SOURCE, ties=True)
    num_layers = count_layers(text)
    sixth = _left_out(6, "every 6th layer attends to all tokens")
    no_bias = Absent(value=False, meaning="false: no projection has one", source=_SOURCE)
    must_be_false(text.at("use_bidirectional_attention"), "a causal decoder; an embedding model keeps no state")
    return finish(
        Gemma3Config,
        top,
        *sections,
        vocab_size=integer(text.at("vocab_size"), absent=_left_out(262_208, "rows of the embedding")),
        num_hidden_layers=num_layers,
        intermediate_size=integer(text.at("intermediate_size")),
        attention=head_sizes(text, facts["hidden_size"], source=_SOURCE, defaults=_HEADS),
        attention_bias=flag(text.at("attention_bias"), absent=no_bias),
        mixers=full_every(text, num_layers, keys=_PERIODS, other=(SLIDING, Mixer.WINDOW), absent=sixth),
        sliding_window=integer(text.at("sliding_window")),
        **facts,
    )


def build(config: Gemma3Config) -> Skeleton:
    """The skeleton of a typed config; the vision tower and its projector are open modules."""
    hidden, bias, is_text = config.hidden_size, config.attention_bias, config.model_type == _TEXT_ONLY
    form = AttentionForm(qkv_bias=bias, o_bias=bias, head_norms=True)
    dense = dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size)
    blocks = {**full_and_window(config.attention, form, config.sliding_window), Mlp.DENSE: dense}
    kinds = ((mixer, Mlp.DENSE) for mixer in config.mixers)
    return decoder(
        config,
        layers_of(kinds, blocks, sandwich_norms(hidden_size=hidden), steps=SANDWICH),
        prefix="model." if is_text else "language_model.model.",
        head="lm_head" if is_text else "language_model.lm_head",
        open_prefixes=() if is_text else tuple((prefix, Group.VISION) for prefix in _TOWERS),
    )


def small(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """A tiny config, with the sizes the published one leaves out."""
    left_out = {"vocab_size": 262_208, **{key: absent.value for key, absent in _HEADS.items()}}
    text = raw.get("text_config")
    if isinstance(text, Mapping):
        return tiny({**raw, "text_config": {**left_out, **text}}, num_layers)
    return tiny({**left_out, **raw}, num_layers)


FAMILY = Family(
    name="gemma3",
    model_types=("gemma3", _TEXT_ONLY),
    title="Gemma 3",
    read=read,
    build=build,
    tiny=small,
    verified=(
        "text names and shapes at full size against transformers 5.23 on the meta device; the vision "
        "tower is listed, not judged",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
)
