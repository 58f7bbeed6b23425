"""Qwen3 dense: grouped attention with normed heads, windows on upper layers where switched on."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.windows import switched_windows
from modelbones.families.stacks.decoder import decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.families.stacks.windowed import full_and_window
from modelbones.parts.attention import AttentionForm, AttentionSizes
from modelbones.parts.ends import pre_norms
from modelbones.parts.mlp import dense_mlp
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_qwen3.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3Config(DecoderConfig):
    """A `qwen3` config; `mixers` holds one entry for each layer."""

    intermediate_size: int
    attention: AttentionSizes
    attention_bias: bool
    mixers: tuple[Mixer, ...]
    sliding_window: int | None


def read(top: Section) -> Qwen3Config:
    """The typed config of `top`."""
    facts = around(top, source=_SOURCE)
    num_layers = count_layers(top)
    mixers, window = switched_windows(top, num_layers, source=_SOURCE)
    no_bias = Absent(value=False, meaning="false: no projection has one", source=_SOURCE)
    return finish(
        Qwen3Config,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=num_layers,
        intermediate_size=integer(top.at("intermediate_size")),
        attention=head_sizes(top, facts["hidden_size"], source=_SOURCE, ungrouped=True),
        attention_bias=flag(top.at("attention_bias"), absent=no_bias),
        mixers=mixers,
        sliding_window=window,
        **facts,
    )


def build(config: Qwen3Config) -> Skeleton:
    """The skeleton of a typed config."""
    hidden, bias = config.hidden_size, config.attention_bias
    form = AttentionForm(qkv_bias=bias, o_bias=bias, head_norms=True)
    mixers = full_and_window(config.attention, form, config.sliding_window)
    dense = dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size)
    kinds = ((mixer, Mlp.DENSE) for mixer in config.mixers)
    return decoder(config, layers_of(kinds, {**mixers, Mlp.DENSE: dense}, pre_norms(hidden_size=hidden)))


FAMILY = Family(
    name="qwen3",
    model_types=("qwen3",),
    title="Qwen3 dense",
    read=read,
    build=build,
    tiny=tiny,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
        "state bytes against kvfit 0.3.0",
    ),
)
