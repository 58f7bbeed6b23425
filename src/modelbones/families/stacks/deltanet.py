"""A stack of Gated DeltaNet and gated attention, with one MTP module under `mtp.`."""

from __future__ import annotations

from modelbones.families.reading.deltanet import DeltaNetConfig
from modelbones.families.stacks.decoder import Blocks, decoder, layer, layers_of
from modelbones.parts.attention import AttentionForm, attention
from modelbones.parts.ends import pre_norms
from modelbones.parts.gdn import gdn
from modelbones.parts.mtp import joined_head
from modelbones.parts.part import Part
from modelbones.skeleton import Layer, Mixer, Mlp, Skeleton
from modelbones.tensors import Group

MODULE = "mtp."


def deltanet_decoder(
    config: DeltaNetConfig,
    mlps: tuple[Mlp, ...],
    blocks: Blocks,
    *,
    fused: bool,
    mtp_mlp: tuple[Mlp, Part],
    prefix: str = "model.",
    open_prefixes: tuple[tuple[str, Group], ...] = (),
) -> Skeleton:
    """The skeleton of `config`, whose MLPs are `mlps` made of `blocks`.

    `fused` is the layout of GDN's inputs, `mtp_mlp` what the MTP layer has beside its attention.
    """
    bias = config.attention_bias
    form = AttentionForm(qkv_bias=bias, o_bias=bias, head_norms=True, gated=True)
    full, norms = attention(config.attention, form), pre_norms(hidden_size=config.hidden_size)
    mixers: Blocks = {Mixer.GDN: gdn(config.gdn, fused=fused), Mixer.ATTENTION: full}
    text = layers_of(zip(config.mixers, mlps, strict=True), {**mixers, **blocks}, norms)
    return decoder(
        config,
        text,
        prefix=prefix,
        mtp=_mtp_module(config, full, norms, *mtp_mlp) if config.num_mtp else None,
        open_prefixes=open_prefixes,
        optional_groups=frozenset() if config.mtp_is_declared else frozenset({Group.MTP}),
    )


def _mtp_module(config: DeltaNetConfig, full: Part, norms: Part, kind: Mlp, mlp: Part) -> Layer:
    """One full-attention layer at `mtp.layers.0`, whatever the interval says of its index.

    Source: ggml-org/llama.cpp issue 23033; vllm-project/vllm
    vllm/model_executor/models/qwen3_next_mtp.py.
    """
    block = tuple(part.under("layers.0.") for part in (full, norms, mlp))
    return layer(
        config.num_hidden_layers,
        Mixer.ATTENTION,
        kind,
        (*block, joined_head(hidden_size=config.hidden_size)),
        is_mtp=True,
        stem=MODULE,
    )
