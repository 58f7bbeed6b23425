"""A stack of layers with one sublayer each, and an MTP module of such layers under `mtp.`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modelbones.families.reading.blocks import Block
from modelbones.families.reading.decoder import DecoderConfig
from modelbones.families.stacks.decoder import decoder, layer
from modelbones.parts.ends import embeddings, final_norm, lm_head, single_norm
from modelbones.parts.mtp import end_norm, start_projections
from modelbones.parts.part import Part
from modelbones.skeleton import Layer, Mixer, Mlp, Skeleton
from modelbones.wiring import MIXER_ONLY, MLP_ONLY, norm_and_head

MODULE = "mtp."
MIXERS = {Block.MAMBA: Mixer.MAMBA2, Block.ATTENTION: Mixer.ATTENTION}
MLPS = {Block.MLP: Mlp.DENSE, Block.MOE: Mlp.ROUTED_MOE}


def single_site_decoder(
    config: DecoderConfig,
    blocks: tuple[Block, ...],
    mtp_blocks: tuple[Block, ...],
    parts: Mapping[Block, Part],
    *,
    prefix: str,
) -> Skeleton:
    """The skeleton of layers that are one of `parts` each, behind one norm."""
    norm = single_norm(hidden_size=config.hidden_size)
    text = tuple(
        layer(
            index,
            MIXERS.get(block, Mixer.NONE),
            MLPS.get(block, Mlp.NONE),
            (parts[block], norm),
            steps=MIXER_ONLY if block in MIXERS else MLP_ONLY,
        )
        for index, block in enumerate(blocks)
    )
    vocab, hidden = config.vocab_size, config.hidden_size
    return decoder(
        config,
        text,
        prefix=prefix,
        mtp=_mtp_module(config, mtp_blocks, parts, norm) if mtp_blocks else None,
        outer=(
            embeddings(prefix, vocab_size=vocab, hidden_size=hidden, name="embeddings"),
            final_norm(prefix, hidden_size=hidden, name="norm_f"),
            replace(lm_head(vocab_size=vocab, hidden_size=hidden), required=not config.tie_word_embeddings),
        ),
        final=norm_and_head(f"{prefix}norm_f.weight"),
    )


def _mtp_module(config: DecoderConfig, blocks: tuple[Block, ...], parts: Mapping[Block, Part], norm: Part) -> Layer:
    """The module's blocks as one layer: the first joins embedding and hidden state, the last norms what leaves.

    Source: sgl-project/sglang python/sglang/srt/models/nemotron_h_mtp.py; vllm-project/vllm
    vllm/model_executor/models/nemotron_h_mtp.py.
    """
    numbered = [(f"layers.{number}.", block) for number, block in enumerate(blocks)]
    return layer(
        config.num_hidden_layers,
        next((MIXERS[block] for block in blocks if block in MIXERS), Mixer.NONE),
        next((MLPS[block] for block in blocks if block in MLPS), Mlp.NONE),
        (
            start_projections(hidden_size=config.hidden_size).under(numbered[0][0]),
            *(part.under(stem) for stem, block in numbered for part in (parts[block], norm)),
            end_norm(hidden_size=config.hidden_size).under(numbered[-1][0]),
        ),
        steps=tuple(step for block in blocks for step in (MIXER_ONLY if block in MIXERS else MLP_ONLY)),
        is_mtp=True,
        stem=MODULE,
    )
