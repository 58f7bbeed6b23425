"""What a server must set aside for one sequence, before the model exists.

Folds over the same buffers as the budget: the reserve is what a sequence owns, sized for
its longest context; the device line is everything one sequence holds, each buffer once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelbones.buffers import PERSISTENT, Buffer, Home, ensure_length
from modelbones.errors import UsageError
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import build, read_mapping
from modelbones.parts.mtp import PROPOSER
from modelbones.skeleton import Layer, Skeleton

RESERVED_MODEL_TYPES = frozenset({"glm5_next", "glm5_next_text"})
"""Source: Metrale/metrale-inference-alpha model-arch seq_state_reserve.rs charges every other type zero."""

MTP_LATENT = "mtp_latent"
MTP_KV = "mtp_kv"
_PLAIN_TERMS = frozenset({"kv", "window_kv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PerSequenceState:
    """Device state one sequence owns, in bytes per rank, by owner.

    Attributes:
        target_layers: Indexer caches of the text stack's sparse layers.
        proposer: What the draft proposer owns; 0 without speculation.
    """

    target_layers: int = 0
    proposer: int = 0

    def total(self) -> int:
        """Bytes for one sequence."""
        return self.target_layers + self.proposer

    def for_batch(self, n: int) -> int:
        """Bytes for `n` sequences at once; 0 counts as 1, as in the seed."""
        if n < 0:
            raise UsageError(f"batch: found {n}; expected 0 or more; name the sequences served at once")
        return self.total() * max(n, 1)


def per_sequence_state_bytes(
    config: ModelConfig | Mapping[str, Any], max_seq_len: int, spec_on: bool
) -> PerSequenceState:
    """What a sequence of up to `max_seq_len` tokens owns under `config`.

    Zeros for another `model_type` than glm5_next, before anything else is looked at.

    Raises:
        ConfigError: The config of this family is refused.
        UsageError: `max_seq_len` is negative.
    """
    model_type = config.get("model_type") if isinstance(config, Mapping) else config.model_type
    if not isinstance(model_type, str) or model_type not in RESERVED_MODEL_TYPES:
        return PerSequenceState()
    typed = read_mapping(config, place="<mapping>") if isinstance(config, Mapping) else config
    return reserve(build(typed), max_seq_len, spec_on=spec_on)


def reserve(skeleton: Skeleton, max_context: int, *, spec_on: bool) -> PerSequenceState:
    """What a sequence of up to `max_context` tokens owns: buffers of `home` owned, whole pools."""
    ensure_length(max_context)
    drafters = (skeleton.mtp,) if spec_on and skeleton.mtp is not None else ()
    return PerSequenceState(target_layers=_owned(skeleton.layers, max_context), proposer=_owned(drafters, max_context))


def _owned(layers: tuple[Layer, ...], max_context: int) -> int:
    return sum(
        buffer.reserved_nbytes(max_context=max_context)
        for layer in layers
        for buffer in layer.buffers
        if buffer.home is Home.OWNED
    )


def device_parts(skeleton: Skeleton, max_context: int, *, num_spec: int, spec_on: bool) -> dict[str, int]:
    """Device bytes of one sequence of `max_context` tokens by part; they sum, nothing is counted twice.

    What the sequence owns is reserved in whole pools; slots and pages hold their rows. With
    speculation the MTP layer's latent and all that its proposer owns come on top.
    """
    parts: dict[str, int] = {}
    for term in skeleton.budget(num_spec).counted:
        parts[term.name] = sum(_held(buffer, max_context) * layers for buffer, layers in term.buffers)
    if spec_on and skeleton.mtp is not None:
        for buffer in skeleton.mtp.buffers:
            name = _pages_name(buffer) if buffer.home is Home.PAGED else PROPOSER
            parts[name] = parts.get(name, 0) + _held(buffer, max_context)
    return parts


def _pages_name(buffer: Buffer) -> str:
    return MTP_KV if buffer.term in _PLAIN_TERMS else MTP_LATENT


def _held(buffer: Buffer, max_context: int) -> int:
    if buffer.home is Home.OWNED:
        return buffer.reserved_nbytes(max_context=max_context)
    return buffer.nbytes(tokens=max_context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncounted:
    """Bytes that are in neither the budget nor the reserve, named so that no one forgets them.

    Attributes:
        name: What they are.
        nbytes: How many.
        per: What they are counted per: "token", or "server".
        reason: Why no sum counts them.
    """

    name: str
    nbytes: int
    per: str
    reason: str


def uncounted(skeleton: Skeleton, *, num_spec: int, spec_on: bool) -> tuple[Uncounted, ...]:
    """What the budget and the reserve leave out."""
    budget = skeleton.budget(num_spec)
    named = [
        Uncounted(
            name=term.name,
            nbytes=term.nbytes(tokens=1),
            per="token",
            reason=f"{term.home.value} of a step: one area, sized by the tokens of a batch, not by a sequence",
        )
        for term in budget.terms
        if not term.is_counted
    ]
    when = "held now" if spec_on else "only when speculating"
    reason = f"the MTP layer's own KV pages, {when}; the budget counts the text stack"
    for name, nbytes in _mtp_pages(skeleton).items():
        named.append(Uncounted(name=name, nbytes=nbytes, per="token", reason=reason))
    slot = sum(term.nbytes(tokens=0) for term in budget.counted if term.home is Home.SLOT)
    if slot:
        reason = "the slot pool's scratch slot, where padded rows of a captured batch write"
        named.append(Uncounted(name="scratch_slot", nbytes=slot, per="server", reason=reason))
    return tuple(named)


def _mtp_pages(skeleton: Skeleton) -> dict[str, int]:
    pages: dict[str, int] = {}
    for buffer in () if skeleton.mtp is None else skeleton.mtp.buffers:
        if buffer.home is Home.PAGED:
            name = _pages_name(buffer)
            pages[name] = pages.get(name, 0) + buffer.nbytes(tokens=1)
    return pages


def kept_outside_pages(skeleton: Skeleton) -> tuple[str, ...]:
    """Names of the state no KV block holds, sorted.

    Empty means that a prefix cache or a swap of KV blocks alone carries a sequence whole.
    """
    return tuple(
        sorted(
            {
                buffer.name
                for layer in skeleton.layers
                for buffer in layer.buffers
                if buffer.home in PERSISTENT and buffer.home is not Home.PAGED
            }
        )
    )
