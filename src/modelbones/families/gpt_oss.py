"""gpt-oss: grouped attention with sinks, every other layer in a window, stacked experts with biases."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import DecoderConfig, around, count_layers, finish
from modelbones.families.reading.heads import head_sizes
from modelbones.families.reading.periods import full_every
from modelbones.families.reading.routing import experts
from modelbones.families.reading.windows import SLIDING
from modelbones.families.stacks.decoder import decoder, layers_of
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.families.stacks.windowed import full_and_window
from modelbones.parts.attention import AttentionForm, AttentionSizes
from modelbones.parts.ends import pre_norms
from modelbones.parts.experts import biased_router, transposed_experts
from modelbones.parts.part import Part
from modelbones.skeleton import Mixer, Mlp, Skeleton

_SOURCE = "transformers 5.23 configuration_gpt_oss.py; vLLM vllm/model_executor/models/gpt_oss.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class GptOssConfig(DecoderConfig):
    """A `gpt_oss` config; `mixers` holds one entry for each layer, `intermediate_size` is an expert's."""

    attention: AttentionSizes
    attention_bias: bool
    mixers: tuple[Mixer, ...]
    sliding_window: int
    intermediate_size: int
    num_local_experts: int
    num_experts_per_tok: int


def read(top: Section) -> GptOssConfig:
    """The typed config of `top`."""
    facts = around(top, source=_SOURCE)
    num_layers = count_layers(top)
    num_experts, num_experts_per_tok = experts(top, "num_local_experts", "num_experts")
    biased = Absent(value=True, meaning="true: every attention projection has a bias", source=_SOURCE)
    second = Absent(value=2, meaning="windows on even layers, full attention on odd ones", source=_SOURCE)
    return finish(
        GptOssConfig,
        top,
        vocab_size=integer(top.at("vocab_size")),
        num_hidden_layers=num_layers,
        attention=head_sizes(top, facts["hidden_size"], source=_SOURCE),
        attention_bias=flag(top.at("attention_bias"), absent=biased),
        mixers=full_every(top, num_layers, keys=(), other=(SLIDING, Mixer.WINDOW), absent=second),
        sliding_window=integer(top.at("sliding_window")),
        intermediate_size=integer(top.at("intermediate_size")),
        num_local_experts=num_experts,
        num_experts_per_tok=num_experts_per_tok,
        **facts,
    )


def build(config: GptOssConfig) -> Skeleton:
    """The skeleton of a typed config, unquantised: the release stores its experts in MXFP4."""
    hidden, bias, num_experts = config.hidden_size, config.attention_bias, config.num_local_experts
    mixers = full_and_window(
        config.attention, AttentionForm(qkv_bias=bias, o_bias=bias, sinks=True), config.sliding_window
    )
    routed = (
        *biased_router("mlp", hidden_size=hidden, num_experts=num_experts),
        *transposed_experts("mlp", hidden_size=hidden, width=config.intermediate_size, num_experts=num_experts),
    )
    blocks = {**mixers, Mlp.ROUTED_MOE: Part(name="routed_moe", tensors=routed)}
    kinds = ((mixer, Mlp.ROUTED_MOE) for mixer in config.mixers)
    return decoder(config, layers_of(kinds, blocks, pre_norms(hidden_size=hidden)))


FAMILY = Family(
    name="gpt_oss",
    model_types=("gpt_oss",),
    title="gpt-oss 20b, 120b",
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
