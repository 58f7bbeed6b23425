"""GLM-4.5 to 4.7: grouped attention with biases, routed MLPs after dense ones, one MTP layer inline."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.experts import read_experts
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.mlps import mlps
from modelbones.families.reading.text import mtp_layers
from modelbones.families.stacks.decoder import Blocks, decoder, layer, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.parts.attention import AttentionForm, AttentionSizes, attention
from modelbones.parts.ends import pre_norms
from modelbones.parts.mlp import MoeSizes, dense_mlp, routed_moe
from modelbones.parts.mtp import mtp_head
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_glm4_moe.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm4MoeConfig(DecoderConfig):
    """A `glm4_moe` config; `mlps` holds one entry for each text layer."""

    attention: AttentionSizes
    attention_bias: bool
    use_qk_norm: bool
    mlps: tuple[Mlp, ...]
    intermediate_size: int
    moe: MoeSizes
    num_nextn_predict_layers: int


def read(top: Section) -> Glm4MoeConfig:
    """The typed config of `top`."""
    facts = around(top, source=_SOURCE)
    hidden, num_layers = facts["hidden_size"], count_layers(top)
    no_bias = Absent(value=False, meaning="false: no projection has one", source=_SOURCE)
    no_norm = Absent(value=False, meaning="false: queries and keys are not normed", source=_SOURCE)
    return finish(
        Glm4MoeConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=num_layers,
        attention=head_sizes(top, hidden, source=_SOURCE),
        attention_bias=flag(top.at("attention_bias"), absent=no_bias),
        use_qk_norm=flag(top.at("use_qk_norm"), absent=no_norm),
        mlps=mlps(top, num_layers) if num_layers else (),
        intermediate_size=integer(top.at("intermediate_size")),
        moe=read_experts(top, hidden_size=hidden),
        num_nextn_predict_layers=mtp_layers(top),
        **facts,
    )


def build(config: Glm4MoeConfig) -> Skeleton:
    """The skeleton of a typed config; the MTP layer is one more layer of the stack with its head."""
    hidden, index = config.hidden_size, config.num_hidden_layers
    form = AttentionForm(qkv_bias=config.attention_bias, head_norms=config.use_qk_norm)
    full, routed, norms = attention(config.attention, form), routed_moe(config.moe), pre_norms(hidden_size=hidden)
    dense = dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size)
    blocks: Blocks = {Mixer.ATTENTION: full, Mlp.DENSE: dense, Mlp.ROUTED_MOE: routed}
    head = mtp_head(hidden_size=hidden, vocab_size=config.vocab_size)
    mtp = layer(index, Mixer.ATTENTION, Mlp.ROUTED_MOE, (full, norms, head, routed), is_mtp=True)
    text = layers_of(((Mixer.ATTENTION, mlp) for mlp in config.mlps), blocks, norms)
    return decoder(config, text, mtp=mtp if config.num_nextn_predict_layers else None)


FAMILY = Family(
    name="glm4_moe",
    model_types=("glm4_moe",),
    title="GLM-4.5, 4.6, 4.7",
    read=read,
    build=build,
    tiny=tiny,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
)
