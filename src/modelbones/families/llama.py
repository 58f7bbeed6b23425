"""Llama: grouped attention and a gated MLP on every layer, pre-norm. The plain control."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.stacks.decoder import Blocks, decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.parts.attention import AttentionForm, AttentionSizes, attention
from modelbones.parts.ends import pre_norms
from modelbones.parts.mlp import dense_mlp
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_llama.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig(DecoderConfig):
    """A `llama` config."""

    intermediate_size: int
    attention: AttentionSizes
    attention_bias: bool
    mlp_bias: bool


def read(top: Section) -> LlamaConfig:
    """The typed config of `top`."""
    facts = around(top, source=_SOURCE)
    no_bias = Absent(value=False, meaning="false: no projection has one", source=_SOURCE)
    return finish(
        LlamaConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=count_layers(top),
        intermediate_size=integer(top.at("intermediate_size")),
        attention=head_sizes(top, facts["hidden_size"], source=_SOURCE, ungrouped=True, divided=True),
        attention_bias=flag(top.at("attention_bias"), absent=no_bias),
        mlp_bias=flag(top.at("mlp_bias"), absent=no_bias),
        **facts,
    )


def build(config: LlamaConfig) -> Skeleton:
    """The skeleton of a typed config."""
    form = AttentionForm(qkv_bias=config.attention_bias, o_bias=config.attention_bias)
    mlp = dense_mlp(hidden_size=config.hidden_size, intermediate_size=config.intermediate_size, bias=config.mlp_bias)
    blocks: Blocks = {Mixer.ATTENTION: attention(config.attention, form), Mlp.DENSE: mlp}
    kinds = [(Mixer.ATTENTION, Mlp.DENSE)] * config.num_hidden_layers
    return decoder(config, layers_of(kinds, blocks, pre_norms(hidden_size=config.hidden_size)))


FAMILY = Family(
    name="llama",
    model_types=("llama",),
    title="Llama 2 to 3.3",
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
