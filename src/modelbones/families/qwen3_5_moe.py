"""Qwen3.5 MoE (and 3.6): Gated DeltaNet and gated attention, stacked experts with one gated shared expert."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Section, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import finish, text_section
from modelbones.families.reading.deltanet import DeltaNetConfig, deltanet_facts
from modelbones.families.reading.routing import experts
from modelbones.families.stacks.deltanet import deltanet_decoder
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.parts.experts import gated_shared_expert, router, split_experts, stacked_experts
from modelbones.parts.part import Part
from modelbones.skeleton import Mlp, Skeleton
from modelbones.tensors import Group

_SOURCE = "transformers 5.23 configuration_qwen3_5_moe.py"
_TEXT_ONLY = "qwen3_5_moe_text"
_MTP_KEYS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen35MoeConfig(DeltaNetConfig):
    """A `qwen3_5_moe` or `qwen3_5_moe_text` config; every layer is routed."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int


def read(top: Section) -> Qwen35MoeConfig:
    """The typed config of `top`; only a wrapper's sizes are under `text_config`."""
    is_text = top.values.get("model_type") == _TEXT_ONLY
    sections = (top,) if is_text else (text_section(top, _TEXT_ONLY), top)
    text = sections[0]
    num_experts, num_experts_per_tok = experts(text, "num_experts", "num_local_experts")
    return finish(
        Qwen35MoeConfig,
        top,
        *sections,
        num_experts=num_experts,
        num_experts_per_tok=num_experts_per_tok,
        moe_intermediate_size=integer(text.at("moe_intermediate_size")),
        shared_expert_intermediate_size=integer(text.at("shared_expert_intermediate_size")),
        **deltanet_facts(*sections, source=_SOURCE, mtp_keys=_MTP_KEYS),
    )


def build(config: Qwen35MoeConfig) -> Skeleton:
    """The skeleton of a typed config; the vision tower is an open module.

    The published trunk stacks its experts; the MTP module of Qwen3.5 stores them one by one.
    Source: sgl-project/sglang-jax issue 1251; ISEEKYAN/mbridge pull 145.
    """
    hidden, is_text = config.hidden_size, config.model_type == _TEXT_ONLY
    around = (
        *router("mlp", hidden_size=hidden, num_experts=config.num_experts),
        *gated_shared_expert("mlp", hidden_size=hidden, width=config.shared_expert_intermediate_size),
    )
    sizes = {"hidden_size": hidden, "width": config.moe_intermediate_size, "num_experts": config.num_experts}
    stacked = Part(name="routed_moe", tensors=(*around, *stacked_experts("mlp", **sizes)))
    one_by_one = Part(name="routed_moe", tensors=(*around, *split_experts("mlp", **sizes)))
    return deltanet_decoder(
        config,
        (Mlp.ROUTED_MOE,) * config.num_hidden_layers,
        {Mlp.ROUTED_MOE: stacked},
        fused=False,
        mtp_mlp=(Mlp.ROUTED_MOE, one_by_one),
        prefix="model." if is_text else "model.language_model.",
        open_prefixes=() if is_text else (("model.visual.", Group.VISION),),
    )


FAMILY = Family(
    name="qwen3_5_moe",
    model_types=("qwen3_5_moe", _TEXT_ONLY),
    title="Qwen3.5, 3.6 MoE",
    read=read,
    build=build,
    tiny=tiny,
    verified=(
        "text names and shapes at full size against transformers 5.23 on the meta device, its split "
        "experts stacked as published; the vision tower is listed, not judged",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
        "state bytes against kvfit 0.3.0",
    ),
)
