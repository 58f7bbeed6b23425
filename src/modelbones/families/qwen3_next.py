"""Qwen3-Next: Gated DeltaNet and gated attention, routed MLPs with one gated shared expert."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Section, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import finish
from modelbones.families.reading.deltanet import DeltaNetConfig, deltanet_facts
from modelbones.families.reading.routing import experts, mlps_by_step
from modelbones.families.stacks.decoder import Blocks
from modelbones.families.stacks.deltanet import deltanet_decoder
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.parts.experts import gated_shared_expert, router, split_experts
from modelbones.parts.mlp import dense_mlp
from modelbones.parts.part import Part
from modelbones.skeleton import Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_qwen3_next.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3NextConfig(DeltaNetConfig):
    """A `qwen3_next` config; `mlps` holds one entry for each layer."""

    mlps: tuple[Mlp, ...]
    intermediate_size: int
    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int


def read(top: Section) -> Qwen3NextConfig:
    """The typed config of `top`."""
    facts = deltanet_facts(top, source=_SOURCE, mtp_keys=("num_nextn_predict_layers", "mtp_num_hidden_layers"))
    num_experts, num_experts_per_tok = experts(top, "num_experts", "num_local_experts")
    widths = ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size")
    return finish(
        Qwen3NextConfig,
        top,
        mlps=mlps_by_step(top, facts["num_hidden_layers"], source=_SOURCE),
        num_experts=num_experts,
        num_experts_per_tok=num_experts_per_tok,
        **{width: integer(top.at(width)) for width in widths},
        **facts,
    )


def build(config: Qwen3NextConfig) -> Skeleton:
    """The skeleton of a typed config."""
    hidden, num_experts = config.hidden_size, config.num_experts
    routed = Part(
        name="routed_moe",
        tensors=(
            *router("mlp", hidden_size=hidden, num_experts=num_experts),
            *gated_shared_expert("mlp", hidden_size=hidden, width=config.shared_expert_intermediate_size),
            *split_experts("mlp", hidden_size=hidden, width=config.moe_intermediate_size, num_experts=num_experts),
        ),
    )
    dense = dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size)
    blocks: Blocks = {Mlp.ROUTED_MOE: routed, Mlp.DENSE: dense}
    return deltanet_decoder(config, config.mlps, blocks, fused=True, mtp_mlp=(Mlp.ROUTED_MOE, routed))


FAMILY = Family(
    name="qwen3_next",
    model_types=("qwen3_next",),
    title="Qwen3-Next",
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
