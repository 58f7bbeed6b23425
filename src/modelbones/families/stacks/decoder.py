"""A decoder: layers composed of a mixer and an MLP, and the tensors before and after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from modelbones.families.reading.decoder import DecoderConfig
from modelbones.parts.ends import outer
from modelbones.parts.part import Part
from modelbones.skeleton import Layer, Mixer, Mlp, ResidualStep, Skeleton
from modelbones.wiring import PRE_NORM, norm_and_head

Blocks: TypeAlias = Mapping[Mixer | Mlp, Part]
"""The part each kind of mixer and of MLP stands for."""


def decoder(
    config: DecoderConfig,
    layers: tuple[Layer, ...],
    *,
    prefix: str = "model.",
    head: str = "lm_head",
    **others: Any,
) -> Skeleton:
    """The skeleton of `layers` under `prefix`, with its `head`; `others` replaces or adds fields of it."""
    ends = outer(
        prefix,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        tied=config.tie_word_embeddings,
        head=head,
        tied_copy=True,
    )
    fields: dict[str, Any] = {
        "mtp": None,
        "outer": ends,
        "tower": (),
        "work": (),
        "final": norm_and_head(f"{prefix}norm.weight"),
        **others,
    }
    return Skeleton(
        model_type=config.model_type,
        hidden_size=config.hidden_size,
        dtype=config.dtype,
        prefix=prefix,
        layers=layers,
        **fields,
    )


def layer(
    index: int,
    mixer: Mixer,
    mlp: Mlp,
    parts: tuple[Part, ...],
    *,
    steps: tuple[ResidualStep, ...] = PRE_NORM,
    is_mtp: bool = False,
    stem: str = "",
) -> Layer:
    """One layer with a plain residual path."""
    return Layer(
        index=index,
        mixer=mixer,
        mlp=mlp,
        hyper_connection=False,
        is_mtp=is_mtp,
        parts=parts,
        steps=steps,
        stem=stem,
    )


def layers_of(
    kinds: Iterable[tuple[Mixer, Mlp]],
    blocks: Blocks,
    norms: Part,
    *,
    steps: tuple[ResidualStep, ...] = PRE_NORM,
) -> tuple[Layer, ...]:
    """The text stack: each layer a mixer, the norms, an MLP; layers of one kind share their parts."""
    return tuple(
        layer(index, mixer, mlp, (blocks[mixer], norms, blocks[mlp]), steps=steps)
        for index, (mixer, mlp) in enumerate(kinds)
    )
