"""Mistral: grouped attention and a gated MLP; one window on every layer, or on none."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Section, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.windows import same_on_every_layer, window_or_null
from modelbones.families.stacks.decoder import decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.families.stacks.windowed import full_and_window
from modelbones.parts.attention import PLAIN, AttentionSizes
from modelbones.parts.ends import pre_norms
from modelbones.parts.mlp import dense_mlp
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_mistral.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class MistralConfig(DecoderConfig):
    """A `mistral` config; `sliding_window` is None where every layer attends to all tokens."""

    intermediate_size: int
    attention: AttentionSizes
    mixers: tuple[Mixer, ...]
    sliding_window: int | None


def read(top: Section) -> MistralConfig:
    """The typed config of `top`."""
    facts = around(top, source=_SOURCE)
    num_layers, window = count_layers(top), window_or_null(top)
    return finish(
        MistralConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=num_layers,
        intermediate_size=integer(top.at("intermediate_size")),
        attention=head_sizes(top, facts["hidden_size"], source=_SOURCE, ungrouped=True, divided=True),
        mixers=same_on_every_layer(top, num_layers, window),
        sliding_window=window,
        **facts,
    )


def build(config: MistralConfig) -> Skeleton:
    """The skeleton of a typed config."""
    hidden = config.hidden_size
    dense = dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size)
    blocks = {**full_and_window(config.attention, PLAIN, config.sliding_window), Mlp.DENSE: dense}
    kinds = ((mixer, Mlp.DENSE) for mixer in config.mixers)
    return decoder(config, layers_of(kinds, blocks, pre_norms(hidden_size=hidden)))


FAMILY = Family(
    name="mistral",
    model_types=("mistral",),
    title="Mistral 7B",
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
