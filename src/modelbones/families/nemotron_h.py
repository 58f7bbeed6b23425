"""Nemotron-H and Nemotron 3: one sublayer a layer, a Mamba-2, attention, MLP or routed block."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.blocks import Block, blocks, mtp_blocks
from modelbones.families.reading.decoder import DecoderConfig, around, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.mamba import mamba2_sizes
from modelbones.families.reading.routing import experts
from modelbones.families.reading.rules import must_be_false, must_equal
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.families.stacks.single_site import single_site_decoder
from modelbones.parts.attention import AttentionForm, AttentionSizes, attention
from modelbones.parts.experts import latent_projections, router, ungated_experts, ungated_mlp
from modelbones.parts.mamba2 import Mamba2Sizes, mamba2
from modelbones.parts.part import Part
from modelbones.ranks import Axis
from modelbones.skeleton import Skeleton
from modelbones.tensors import Role

_SOURCE = "transformers 5.23 configuration_nemotron_h.py"
AT = "mixer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedSizes:
    """The widths of a routed block; its experts work at the latent one where there is one."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    moe_shared_expert_intermediate_size: int
    moe_latent_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NemotronHConfig(DecoderConfig):
    """A `nemotron_h` config; the sizes of blocks that no layer has are None."""

    blocks: tuple[Block, ...]
    mtp_blocks: tuple[Block, ...]
    attention: AttentionSizes | None
    mamba: Mamba2Sizes | None
    intermediate_size: int | None
    routed: RoutedSizes | None
    mlp_bias: bool


def read(top: Section) -> NemotronHConfig:
    """The typed config of `top`; only the sizes of blocks that some layer has are required."""
    facts = around(top, source=_SOURCE)
    hidden, text, module = facts["hidden_size"], blocks(top), mtp_blocks(top)
    used = {*text, *module}
    no_bias = Absent(value=False, meaning="false: no projection has one", source=_SOURCE)
    must_be_false(top.at("attention_bias"), "these attention projections have no bias")
    width = ("head_dim", "attention_head_dim")
    return finish(
        NemotronHConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=len(text),
        blocks=text,
        mtp_blocks=module,
        attention=head_sizes(top, hidden, source=_SOURCE, width=width) if Block.ATTENTION in used else None,
        mamba=mamba2_sizes(top, hidden, source=_SOURCE) if Block.MAMBA in used else None,
        intermediate_size=integer(top.at("intermediate_size")) if Block.MLP in used else None,
        routed=_routed(top) if Block.MOE in used else None,
        mlp_bias=flag(top.at("mlp_bias"), absent=no_bias),
        **facts,
    )


def _routed(top: Section) -> RoutedSizes:
    num_experts, chosen = experts(top, "n_routed_experts", "num_local_experts")
    must_equal(top.at("n_shared_experts"), 1, "one shared expert of its own width")
    latent = top.at("moe_latent_size")
    top.take(latent.key)
    return RoutedSizes(
        num_experts=num_experts,
        num_experts_per_tok=chosen,
        moe_intermediate_size=integer(top.at("moe_intermediate_size")),
        moe_shared_expert_intermediate_size=integer(top.at("moe_shared_expert_intermediate_size")),
        moe_latent_size=integer(latent) if top.has(latent.key) else None,
    )


def build(config: NemotronHConfig) -> Skeleton:
    """The skeleton of a typed config."""
    parts: dict[Block, Part] = {}
    if config.attention is not None:
        parts[Block.ATTENTION] = attention(config.attention, AttentionForm(at=AT))
    if config.mamba is not None:
        parts[Block.MAMBA] = mamba2(config.mamba, at=AT)
    if config.intermediate_size is not None:
        size, bias = config.intermediate_size, config.mlp_bias
        dense = ungated_mlp(AT, config.hidden_size, size, Role.DENSE_MLP, Axis.FFN, bias=bias)
        parts[Block.MLP] = Part(name="dense_mlp", tensors=dense)
    if config.routed is not None:
        parts[Block.MOE] = _routed_part(config.hidden_size, config.routed, bias=config.mlp_bias)
    return single_site_decoder(config, config.blocks, config.mtp_blocks, parts, prefix="backbone.")


def _routed_part(hidden: int, sizes: RoutedSizes, *, bias: bool) -> Part:
    shared, latent = sizes.moe_shared_expert_intermediate_size, sizes.moe_latent_size
    return Part(
        name="routed_moe",
        tensors=(
            *router(AT, hidden_size=hidden, num_experts=sizes.num_experts, selection_bias=True),
            *(latent_projections(AT, hidden_size=hidden, latent_size=latent, bias=bias) if latent else ()),
            *ungated_mlp(f"{AT}.shared_experts", hidden, shared, Role.SHARED_EXPERTS, Axis.FFN, bias=bias),
            *ungated_experts(
                AT, hidden_size=latent or hidden, width=sizes.moe_intermediate_size, num_experts=sizes.num_experts
            ),
        ),
    )


FAMILY = Family(
    name="nemotron_h",
    model_types=("nemotron_h",),
    title="Nemotron-H, Nemotron 3",
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
