"""A skeleton's buffers as the states vLLM's allocator knows.

The one place where buffer names meet the engine: a new mixer is a line in `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterator

from modelbones.buffers import PERSISTENT, Buffer
from modelbones.engines.vllm.plan import CachePlan, plan_states
from modelbones.engines.vllm.refusals import EngineRefusedError
from modelbones.engines.vllm.settings import VllmSettings
from modelbones.engines.vllm.states import Kind, LayerState, Mechanism, ModelStates
from modelbones.parts.mtp import PROPOSER
from modelbones.parts.part import Part
from modelbones.ranks import Axis
from modelbones.skeleton import Layer, Skeleton

_KINDS: dict[str, tuple[Kind, Mechanism | None]] = {
    "kda_recurrent": (Kind.RECURRENT, Mechanism.KDA),
    "kda_conv": (Kind.RECURRENT, Mechanism.KDA),
    "gdn_recurrent": (Kind.RECURRENT, Mechanism.GDN),
    "gdn_conv": (Kind.RECURRENT, Mechanism.GDN),
    "ssm": (Kind.RECURRENT, Mechanism.MAMBA2),
    "ssm_conv": (Kind.RECURRENT, Mechanism.MAMBA2),
    "kv": (Kind.KV, None),
    "window_kv": (Kind.WINDOW, None),
    "latent": (Kind.LATENT, None),
    "rope_key": (Kind.LATENT, None),
    "indexer.key": (Kind.INDEX, None),
    "indexer.k_normed": (Kind.INDEX, None),
}
"""Budget term, or buffer name, -> what it is to the allocator."""
_DERIVED = frozenset({"indexer.gate", "indexer.valid"})
"""Rows the engine does not keep for every token: the tail holds the gates it still needs."""
_OUTPUTS = ("o_proj.weight", "out_proj.weight")


def states_of(skeleton: Skeleton) -> ModelStates:
    """The states of `skeleton`, in layer order.

    Raises:
        EngineRefusedError: It keeps something no rule here maps.
    """
    return ModelStates(
        model_type=skeleton.model_type,
        dtype=skeleton.dtype,
        states=tuple(state for layer in skeleton.layers for state in _layer_states(layer)),
        mtp=() if skeleton.mtp is None else tuple(_layer_states(skeleton.mtp)),
        query_heads=_query_heads(skeleton),
    )


def plan_cache(
    skeleton: Skeleton, settings: VllmSettings, *, memory: int | None = None, num_blocks: int | None = None
) -> CachePlan:
    """The cache of `skeleton` from `memory` bytes for it on each rank, or from a block count.

    Raises:
        EngineRefusedError: The engine would not start so, or no source tells.
        UnknownVersionError: The version's rules are not known and none are assumed.
        UsageError: Both of `memory` and `num_blocks` are given, or neither, or a negative one.
    """
    return plan_states(states_of(skeleton), settings, memory=memory, num_blocks=num_blocks)


def drafter_states(skeleton: Skeleton) -> tuple[LayerState, ...]:
    """The states of a draft model of its own, for `VllmSettings.drafter`."""
    return tuple(state for layer in skeleton.layers for state in _layer_states(layer, is_draft=True))


def _layer_states(layer: Layer, *, is_draft: bool = False) -> Iterator[LayerState]:
    held: dict[tuple[Kind, Mechanism | None], list[Buffer]] = {}
    for buffer in layer.buffers:
        if buffer.home not in PERSISTENT or buffer.term == PROPOSER or buffer.name in _DERIVED:
            continue
        known = _KINDS.get(buffer.name) or _KINDS.get(buffer.term)
        if known is None:
            raise EngineRefusedError(
                place=f"layer {layer.index}",
                found=f'state "{buffer.name}" of term "{buffer.term}"',
                expected=f"one of {', '.join(sorted(_KINDS))}",
                fix="say how the engine stores it (engines/vllm/mapping.py)",
            )
        held.setdefault(known, []).append(buffer)
    for (kind, mechanism), buffers in held.items():
        yield LayerState(layer=layer.index, kind=kind, buffers=tuple(buffers), mechanism=mechanism, is_draft=is_draft)


def _query_heads(skeleton: Skeleton) -> tuple[int, ...]:
    """Distinct head counts over the output projections of all mixers, sorted."""
    parts = {id(part): part for layer in skeleton.all_layers() for part in layer.parts}
    return tuple(sorted({heads for part in parts.values() for heads in _heads_of(part)}))


def _heads_of(part: Part) -> Iterator[int]:
    for tensor in part.tensors:
        if part.state is not None and tensor.name.endswith(_OUTPUTS):
            for cut in tensor.split:
                if cut.axis is Axis.HEADS:
                    yield from (units for _, units in cut.blocks)
