"""Kimi-Linear: three KDA layers to one latent-attention layer without rotary turn, routed MLPs.

Source: transformers 5.23 configuration_kimi_linear.py and modeling_kimi_linear.py;
moonshotai/Kimi-Linear-48B-A3B-Instruct config.json and modeling_kimi.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Said, Section, integer
from modelbones.families.family import Family
from modelbones.families.model_config import ModelConfig, concluded
from modelbones.families.reading.experts import ExpertKeys, read_experts
from modelbones.families.reading.latent import read_mla
from modelbones.families.reading.mixers import LINEAR_WORDS, NumberedLists, mixers
from modelbones.families.reading.mlps import mlps, routed_every
from modelbones.families.reading.rules import must_be_false
from modelbones.families.reading.text import TextSizes, read_text
from modelbones.families.stacks.shrink import tiny
from modelbones.parts.ends import outer, pre_norms
from modelbones.parts.kda import kda
from modelbones.parts.mla import MlaSizes, mla
from modelbones.parts.mlp import W123, MoeNames, MoeSizes, dense_mlp, routed_moe
from modelbones.skeleton import Layer, Mixer, Mlp, Skeleton
from modelbones.wiring import PRE_NORM, norm_and_head

PREFIX = "model."
SOURCE = "transformers 5.23 configuration_kimi_linear.py"
WORDS = LINEAR_WORDS | {"full_attention": Mixer.MLA}
KEYS = ExpertKeys(
    routed=("num_experts", "num_local_experts"),
    chosen=("num_experts_per_token", "num_experts_per_tok"),
    shared=("num_shared_experts", "n_shared_experts"),
)
MOE = MoeNames(block="block_sparse_moe", experts=W123)
"""Dense layers are called `mlp`, routed ones `block_sparse_moe` with `w1`, `w2`, `w3` experts."""
OTHER_MODEL = "no such key: it belongs to Kimi-K3, whose text model has this model_type too"


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiLinearConfig(ModelConfig):
    """A `kimi_linear` config, one record a block; `mixers` and `mlps` have one entry a layer."""

    text: TextSizes
    mixers: tuple[Mixer, ...]
    mlps: tuple[Mlp, ...]
    linear_num_heads: int
    linear_head_dim: int
    linear_conv_kernel_dim: int
    mla: MlaSizes
    moe: MoeSizes


def read(top: Section) -> KimiLinearConfig:
    """The typed config of `top`; everything wrong with it is raised at once.

    The lists of `linear_attn_config` number the layers from 1.
    """
    linear = top.section("linear_attn_config") or Section({}, top.path_of("linear_attn_config"), top.ledger)
    text = read_text(top)
    hidden, num_layers = text.hidden_size, text.num_hidden_layers
    lists = NumberedLists(section=linear, full=Mixer.MLA, start=1)
    every = routed_every(top, source=SOURCE)
    _refuse_others(top, linear)
    fields = {
        "text": text,
        "mixers": mixers(top, lists, num_layers, WORDS) if num_layers else (),
        "mlps": mlps(top, num_layers, every=every) if num_layers else (),
        "linear_num_heads": integer(linear.at("num_heads"), top.at("linear_num_heads")),
        "linear_head_dim": integer(linear.at("head_dim"), top.at("linear_head_dim")),
        "linear_conv_kernel_dim": integer(linear.at("short_conv_kernel_size"), top.at("linear_conv_kernel_dim")),
        "mla": read_mla(top, hidden_size=hidden, source=SOURCE, null_rank=True),
        "moe": read_experts(top, hidden_size=hidden, keys=KEYS),
    }
    longest = ("max_position_embeddings", "model_max_length")
    return concluded(KimiLinearConfig, top, top, source=SOURCE, longest=longest, **fields)


def _refuse_others(top: Section, linear: Section) -> None:
    """What would change the tensors or the residual path without a word in `model_type`."""
    for key in ("attn_res_block_size", "routed_expert_hidden_size"):
        if top.has(key):
            top.ledger.fault(top.path_of(key), found=top.take(key), expected=OTHER_MODEL)
    must_be_false(top.at("mla_use_output_gate"), "the latent attention has no output gate")
    must_be_false(linear.at("use_full_rank_gate"), "the gate of KDA has a low rank")
    none = Absent(value=0, meaning="0: no MTP layer is declared", source=SOURCE)
    mtp = top.at("num_nextn_predict_layers")
    if integer(mtp, minimum=0, absent=none):
        top.ledger.fault(mtp.path, found=Said(str(top.take(mtp.key))), expected="0: no release has an MTP layer")


def build(config: KimiLinearConfig) -> Skeleton:
    """The skeleton of a typed config."""
    text, heads = config.text, config.linear_num_heads
    hidden = text.hidden_size
    norms = pre_norms(hidden_size=hidden)
    parts = {
        Mixer.KDA: kda(
            hidden_size=hidden,
            num_heads=heads,
            head_dim=config.linear_head_dim,
            kernel=config.linear_conv_kernel_dim,
            decay_shape=(1, 1, heads, 1),
        ),
        Mixer.MLA: mla(config.mla),
        Mlp.DENSE: dense_mlp(hidden_size=hidden, intermediate_size=text.intermediate_size),
        Mlp.ROUTED_MOE: routed_moe(config.moe, MOE),
    }
    layers = tuple(
        Layer(
            index=index,
            mixer=mixer,
            mlp=mlp,
            hyper_connection=False,
            is_mtp=False,
            parts=(parts[mixer], norms, parts[mlp]),
            steps=PRE_NORM,
        )
        for index, (mixer, mlp) in enumerate(zip(config.mixers, config.mlps, strict=True))
    )
    return Skeleton(
        model_type=config.model_type,
        hidden_size=hidden,
        dtype=config.dtype,
        prefix=PREFIX,
        layers=layers,
        mtp=None,
        outer=outer(PREFIX, vocab_size=text.vocab_size, hidden_size=hidden, tied=config.tie_word_embeddings),
        tower=(),
        work=(),
        final=norm_and_head(f"{PREFIX}norm.weight"),
    )


FAMILY = Family(
    name="kimi_linear",
    model_types=("kimi_linear",),
    title="Kimi-Linear",
    read=read,
    build=build,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device, "
        "its dense layer's name corrected",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
    tiny=tiny,
)
