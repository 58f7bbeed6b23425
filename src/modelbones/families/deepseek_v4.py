"""DeepSeek-V4: windows, pooled attention of two kinds, hyper-connections with a learned head.

Source: transformers 5.23 configuration_deepseek_v4.py and modeling_deepseek_v4.py;
deepseek-ai/DeepSeek-V4-Flash config.json, inference/model.py and model.safetensors.index.json.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Section, integer
from modelbones.families.family import Family
from modelbones.families.model_config import ModelConfig, concluded
from modelbones.families.reading.experts import read_experts
from modelbones.families.reading.ratios import by_table, mixers_by_ratio, read_compressed
from modelbones.families.reading.text import MAX_LAYERS, mtp_layers
from modelbones.families.stacks.shrink import tiny_compressed
from modelbones.parts.compressed import CompressedSizes, compressed_sparse, heavily_compressed, window_mqa
from modelbones.parts.ends import embeddings, final_norm, lm_head
from modelbones.parts.hyper_connection import HYPER_HEAD_MATRIX, highway, hyper_connection, hyper_head
from modelbones.parts.linear import vector
from modelbones.parts.mlp import W123, MoeNames, MoeSizes, hash_table, routed_moe
from modelbones.parts.mtp import summed_head
from modelbones.parts.part import Part
from modelbones.skeleton import Final, FinalStep, Layer, Mixer, Mlp, Skeleton
from modelbones.tensors import Group, Role, TensorPattern
from modelbones.wiring import both_sites, norm_and_head

SOURCE = "transformers 5.23 configuration_deepseek_v4.py"
ROUTED = MoeNames(block="ffn", bias="gate.bias", experts=W123, shared=W123)
HASHED = MoeNames(block="ffn", bias=None, experts=W123, shared=W123)
NORMS = ("attn_norm.weight", "ffn_norm.weight")
STEPS = both_sites(hyper=True, mixer_norm=NORMS[0], mlp_norm=NORMS[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepseekV4Config(ModelConfig):
    """A `deepseek_v4` config; `mixers` and `is_hashed` have one entry a layer.

    `has_drafter` says that the config declares a drafting stack of another make, whose
    tensors under `mtp.` are not judged.
    """

    vocab_size: int
    mixers: tuple[Mixer, ...]
    is_hashed: tuple[bool, ...]
    attention: CompressedSizes
    moe: MoeSizes
    hc_mult: int
    num_nextn_predict_layers: int
    has_drafter: bool


def read(top: Section) -> DeepseekV4Config:
    """The typed config of `top`; everything wrong with it is raised at once."""
    hidden, spot = integer(top.at("hidden_size")), top.at("num_hidden_layers")
    num_layers = integer(spot, maximum=MAX_LAYERS)
    is_counted = top.ledger.is_sound(spot)
    return concluded(
        DeepseekV4Config,
        top,
        top,
        source=SOURCE,
        vocab_size=integer(top.at("vocab_size")),
        mixers=mixers_by_ratio(top, num_layers) if is_counted else (),
        is_hashed=by_table(top, num_layers) if is_counted else (),
        attention=read_compressed(top, hidden_size=hidden),
        moe=read_experts(top, hidden_size=hidden),
        hc_mult=integer(top.at("hc_mult")),
        num_nextn_predict_layers=mtp_layers(top),
        has_drafter=top.has("dspark_block_size"),
    )


def build(config: DeepseekV4Config) -> Skeleton:
    """The skeleton of a typed config; its published names have no prefix."""
    hidden, vocab = config.attention.hidden_size, config.vocab_size
    parts = _parts(config)
    kinds = zip(config.mixers, config.is_hashed, strict=True)
    layers = tuple(_layer(parts, index, mixer, is_hashed) for index, (mixer, is_hashed) in enumerate(kinds))
    declares_mtp = config.num_nextn_predict_layers and not config.has_drafter
    streams = hyper_head(hidden_size=hidden, hc_mult=config.hc_mult)
    head = () if config.tie_word_embeddings else (lm_head(vocab_size=vocab, hidden_size=hidden, name="head"),)
    return Skeleton(
        model_type=config.model_type,
        hidden_size=hidden,
        dtype=config.dtype,
        prefix="",
        layers=layers,
        mtp=_mtp(config, parts, streams) if declares_mtp else None,
        outer=(
            embeddings("", vocab_size=vocab, hidden_size=hidden, name="embed"),
            final_norm("", hidden_size=hidden),
            *head,
            *streams,
        ),
        tower=(),
        work=(highway(hidden_size=hidden, hc_mult=config.hc_mult),),
        final=(FinalStep(Final.HYPER_HEAD, weight=HYPER_HEAD_MATRIX), *norm_and_head("norm.weight")),
        open_prefixes=(("mtp.", Group.MTP),) if config.has_drafter else (),
    )


def _parts(config: DeepseekV4Config) -> dict[Mixer | bool | str, Part]:
    """Each building block once; False and True are the blocks routed by score and by table."""
    hidden = config.attention.hidden_size
    by_score, by_token = routed_moe(config.moe, ROUTED), routed_moe(config.moe, HASHED)
    table = hash_table(block="ffn", vocab_size=config.vocab_size, num_experts_per_tok=config.moe.num_experts_per_tok)
    return {
        Mixer.WINDOW: window_mqa(config.attention),
        Mixer.CSA: compressed_sparse(config.attention),
        Mixer.HCA: heavily_compressed(config.attention),
        False: by_score,
        True: Part(name="hash_moe", tensors=(*by_token.tensors, table)),
        "norms": Part(name="pre_norms", tensors=tuple(vector(name, hidden, Role.LAYER_NORM) for name in NORMS)),
        "hc": hyper_connection(hidden_size=hidden, hc_mult=config.hc_mult),
    }


def _layer(parts: dict[Mixer | bool | str, Part], index: int, mixer: Mixer, is_hashed: bool) -> Layer:
    return Layer(
        index=index,
        mixer=mixer,
        mlp=Mlp.ROUTED_MOE,
        hyper_connection=True,
        is_mtp=False,
        parts=(parts[mixer], parts["norms"], parts["hc"], parts[is_hashed]),
        steps=STEPS,
        indexer_from=index if mixer is Mixer.CSA else None,
    )


def _mtp(config: DeepseekV4Config, parts: dict[Mixer | bool | str, Part], streams: tuple[TensorPattern, ...]) -> Layer:
    """The module under `mtp.0.`: a window layer between a joining head and a learned collapse of its own."""
    head = summed_head(hidden_size=config.attention.hidden_size, leaving=streams)
    return Layer(
        index=len(config.mixers),
        mixer=Mixer.WINDOW,
        mlp=Mlp.ROUTED_MOE,
        hyper_connection=True,
        is_mtp=True,
        parts=(parts[Mixer.WINDOW], parts["norms"], parts["hc"], head, parts[False]),
        steps=STEPS,
        stem="mtp.0.",
    )


FAMILY = Family(
    name="deepseek_v4",
    model_types=("deepseek_v4",),
    title="DeepSeek-V4",
    read=read,
    build=build,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device, "
        "corrected to the published names",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
    tiny=tiny_compressed,
)
