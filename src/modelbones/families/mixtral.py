"""Mixtral: grouped attention and eight experts a layer, their matrices called w1, w2 and w3."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.routing import experts
from modelbones.families.reading.windows import same_on_every_layer
from modelbones.families.stacks.decoder import decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.families.stacks.windowed import full_and_window
from modelbones.parts.attention import PLAIN, AttentionSizes
from modelbones.parts.ends import pre_norms
from modelbones.parts.mlp import W123, MoeNames, MoeSizes, routed_moe
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_mixtral.py"
_NAMES = MoeNames(block="block_sparse_moe", bias=None, experts=W123)
NO_WINDOW = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtralConfig(DecoderConfig):
    """A `mixtral` config; `sliding_window` is None where every layer attends to all tokens."""

    intermediate_size: int
    attention: AttentionSizes
    num_local_experts: int
    num_experts_per_tok: int
    mixers: tuple[Mixer, ...]
    sliding_window: int | None


def read(top: Section) -> MixtralConfig:
    """The typed config of `top`."""
    facts = around(top, source=_SOURCE)
    num_experts, num_experts_per_tok = experts(top, "num_local_experts", "num_experts")
    none = Absent(value=NO_WINDOW, meaning="null: every layer attends to all tokens", source=_SOURCE)
    num_layers, window = count_layers(top), integer(top.at("sliding_window"), absent=none) or None
    return finish(
        MixtralConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=num_layers,
        intermediate_size=integer(top.at("intermediate_size")),
        attention=head_sizes(top, facts["hidden_size"], source=_SOURCE, ungrouped=True, divided=True),
        num_local_experts=num_experts,
        num_experts_per_tok=num_experts_per_tok,
        mixers=same_on_every_layer(top, num_layers, window),
        sliding_window=window,
        **facts,
    )


def build(config: MixtralConfig) -> Skeleton:
    """The skeleton of a typed config."""
    hidden = config.hidden_size
    sizes = MoeSizes(
        hidden_size=hidden,
        moe_intermediate_size=config.intermediate_size,
        n_routed_experts=config.num_local_experts,
        n_shared_experts=0,
        num_experts_per_tok=config.num_experts_per_tok,
    )
    mixers = full_and_window(config.attention, PLAIN, config.sliding_window)
    blocks = {**mixers, Mlp.ROUTED_MOE: routed_moe(sizes, _NAMES)}
    kinds = ((mixer, Mlp.ROUTED_MOE) for mixer in config.mixers)
    return decoder(config, layers_of(kinds, blocks, pre_norms(hidden_size=hidden)))


FAMILY = Family(
    name="mixtral",
    model_types=("mixtral",),
    title="Mixtral 8x7B, 8x22B",
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
