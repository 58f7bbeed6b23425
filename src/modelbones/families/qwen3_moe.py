"""Qwen3 MoE: grouped attention with normed heads, routed MLPs without a shared expert."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.routing import experts, mlps_by_step
from modelbones.families.reading.rules import must_be_false
from modelbones.families.stacks.decoder import Blocks, decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.parts.attention import AttentionForm, AttentionSizes, attention
from modelbones.parts.ends import pre_norms
from modelbones.parts.experts import router, split_experts
from modelbones.parts.mlp import dense_mlp
from modelbones.parts.part import Part
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_qwen3_moe.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3MoeConfig(DecoderConfig):
    """A `qwen3_moe` config; `mlps` holds one entry for each layer."""

    attention: AttentionSizes
    attention_bias: bool
    mlps: tuple[Mlp, ...]
    intermediate_size: int
    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int


def read(top: Section) -> Qwen3MoeConfig:
    """The typed config of `top`; windows, which engines read differently here, are refused."""
    facts = around(top, source=_SOURCE)
    num_layers = count_layers(top)
    num_experts, num_experts_per_tok = experts(top, "num_experts", "num_local_experts")
    no_bias = Absent(value=False, meaning="false: no projection has one", source=_SOURCE)
    must_be_false(top.at("use_sliding_window"), "engines disagree on which layers would have the window")
    for key in ("sliding_window", "max_window_layers"):
        top.take(key)
    return finish(
        Qwen3MoeConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=num_layers,
        attention=head_sizes(top, facts["hidden_size"], source=_SOURCE),
        attention_bias=flag(top.at("attention_bias"), absent=no_bias),
        mlps=mlps_by_step(top, num_layers, source=_SOURCE),
        intermediate_size=integer(top.at("intermediate_size")),
        num_experts=num_experts,
        num_experts_per_tok=num_experts_per_tok,
        moe_intermediate_size=integer(top.at("moe_intermediate_size")),
        **facts,
    )


def build(config: Qwen3MoeConfig) -> Skeleton:
    """The skeleton of a typed config."""
    hidden, bias, num_experts = config.hidden_size, config.attention_bias, config.num_experts
    routed = (
        *router("mlp", hidden_size=hidden, num_experts=num_experts),
        *split_experts("mlp", hidden_size=hidden, width=config.moe_intermediate_size, num_experts=num_experts),
    )
    blocks: Blocks = {
        Mixer.ATTENTION: attention(config.attention, AttentionForm(qkv_bias=bias, o_bias=bias, head_norms=True)),
        Mlp.ROUTED_MOE: Part(name="routed_moe", tensors=routed),
        Mlp.DENSE: dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size),
    }
    kinds = ((Mixer.ATTENTION, mlp) for mlp in config.mlps)
    return decoder(config, layers_of(kinds, blocks, pre_norms(hidden_size=hidden)))


FAMILY = Family(
    name="qwen3_moe",
    model_types=("qwen3_moe",),
    title="Qwen3 MoE",
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
