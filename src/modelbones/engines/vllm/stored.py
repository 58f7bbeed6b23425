"""`Stored`: what vLLM keeps of each state, resolved to bytes by layout, dtype and rank.

Source: vllm-project/vllm vllm/v1/kv_cache_interface.py (one spec a state) and
vllm/model_executor/layers/mamba/mamba_utils.py (dtypes and shapes of recurrent states).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from modelbones.buffers import Buffer
from modelbones.dtypes import DType
from modelbones.engines.vllm.layouts import INDEX_STATES, index_row_bytes, latent_layout
from modelbones.engines.vllm.refusals import EngineRefusedError
from modelbones.engines.vllm.settings import KvDtype, SpecMethod, VllmSettings
from modelbones.engines.vllm.states import Kind, LayerState, Mechanism, ModelStates
from modelbones.errors import UsageError
from modelbones.ranks import Axis, Ranks
from modelbones.units import ceil_div

MODEL_DTYPE_STATE = frozenset({"qwen3_next", "bamba", "granitemoehybrid", "falcon_h1", "mamba2", "zamba2"})
"""Models whose recurrent state defaults to the model's dtype; others keep their own, fp32."""
KDA_STATE = (DType.F32, DType.BF16)
STATE = (DType.F32, DType.BF16, DType.F16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What one layer keeps; layers that keep the same are one bucket.

    Attributes:
        kind: What it is to the allocator.
        row_bytes: Bytes of one row on this rank: a token's, an index pool's or a tail
            token's; the whole state's for a recurrence.
        align_bytes: Bytes a token has as the block alignment counts it.
        pool: Tokens a row stands for.
        window: Tokens of a sliding window; 0 without one.
        kernel_rows: Rows the kernel reads at once; a packed block is a multiple of them.
        ring: Rows of a tail.
        is_borrowing: Whether a fork lays it into other layers' slots.
    """

    kind: Kind
    row_bytes: int
    align_bytes: int = 0
    pool: int = 1
    window: int = 0
    kernel_rows: int = 1
    ring: int = 0
    is_borrowing: bool = False

    def page_bytes(self, block_tokens: int) -> int:
        """Bytes of one layer's page of `block_tokens`."""
        match self.kind:
            case Kind.RECURRENT:
                return self.row_bytes
            case Kind.TAIL:
                return self.row_bytes * self.ring
        assert block_tokens % self.pool == 0, "the grain is a multiple of every index pool"
        return self.row_bytes * (block_tokens // self.pool)


def stored_states(model: ModelStates, settings: VllmSettings) -> tuple[Stored, ...]:
    """What this rank keeps of every layer: the model's, the MTP layer's, the drafter's.

    Raises:
        EngineRefusedError: A dtype or a rank count the engine would refuse.
    """
    ensure_divisible(model, settings)
    return tuple(_resolved(model, settings))


def _resolved(model: ModelStates, settings: VllmSettings) -> Iterator[Stored]:
    for state in _all_states(model, settings):
        match state.kind:
            case Kind.RECURRENT:
                yield Stored(kind=Kind.RECURRENT, row_bytes=_recurrent_bytes(model, settings, state))
            case Kind.KV | Kind.WINDOW:
                row = _kv_bytes(settings, state)
                apart = state.is_draft and state.kind is Kind.WINDOW and settings.drafter_block is not None
                yield Stored(kind=state.kind, row_bytes=row, align_bytes=row, window=state.window, is_borrowing=apart)
            case Kind.LATENT:
                yield _latent(model, settings, state)
            case Kind.INDEX:
                yield from _index(settings, state)


def _all_states(model: ModelStates, settings: VllmSettings) -> tuple[LayerState, ...]:
    states = model.states
    if settings.spec_method is SpecMethod.MTP:
        if not model.mtp:
            raise UsageError(
                "vllm: spec_method: found mtp; expected a model with an MTP layer; draft otherwise or not at all"
            )
        states = (*states, *model.mtp)
    if not settings.rules.honours_shared_indexers:
        states = _with_every_indexer(states)
    return (*states, *settings.drafter)


def _with_every_indexer(states: tuple[LayerState, ...]) -> tuple[LayerState, ...]:
    """The states with an indexer on every latent layer: older versions make them all."""
    index = next((state for state in states if state.kind is Kind.INDEX), None)
    if index is None:
        return states
    latents = tuple(state for state in states if state.kind is not Kind.INDEX)
    return (*latents, *(replace(index, layer=state.layer) for state in latents if state.kind is Kind.LATENT))


def _heads(settings: VllmSettings) -> Ranks:
    return Ranks.of({Axis.HEADS: settings.tp})


def _kv_bytes(settings: VllmSettings, state: LayerState) -> int:
    match settings.kv_dtype:
        case KvDtype.AUTO:
            buffers: Iterable[Buffer] = state.buffers
        case KvDtype.BF16:
            buffers = (replace(buffer, dtype=DType.BF16) for buffer in state.buffers)
        case KvDtype.FP8:
            buffers = (replace(buffer, dtype=DType.F8_E4M3) for buffer in state.buffers)
        case _ if state.is_draft:
            # A layout of the target's latents says nothing of a drafter's keys and values.
            buffers = state.buffers
        case _:
            raise EngineRefusedError(
                place="kv_dtype",
                found=f"{settings.kv_dtype.value} for keys and values",
                expected="auto, bf16 or fp8",
                fix="the ds_mla layouts belong to sparse latent attention",
            )
    return sum(buffer.row_bytes(ranks=_heads(settings)) for buffer in buffers)


def _latent(model: ModelStates, settings: VllmSettings, state: LayerState) -> Stored:
    layout = latent_layout(model, settings, state)
    counted = state.elements * layout.element_bytes
    on_stored = settings.rules.aligns_on_stored_row or settings.latent_row_bytes is not None
    return Stored(
        kind=Kind.LATENT,
        row_bytes=layout.row_bytes,
        align_bytes=layout.row_bytes if on_stored else counted,
        kernel_rows=layout.kernel_block,
    )


def _index(settings: VllmSettings, state: LayerState) -> Iterator[Stored]:
    head_dim, pool = state.buffers[0].shape[-1], state.pool
    rows = INDEX_STATES.get(settings.capability, 64)
    yield Stored(kind=Kind.INDEX, row_bytes=index_row_bytes(head_dim), pool=pool, kernel_rows=rows)
    if pool > 1:
        # Key and gate of each token, in the model's 2 bytes.
        yield Stored(kind=Kind.TAIL, row_bytes=2 * head_dim * 2, ring=_ring(settings, pool))


def _ring(settings: VllmSettings, pool: int) -> int:
    """Tokens a tail holds: one pool, or whole pools for the drafted tokens too."""
    if not settings.rules.tail_ring:
        return pool
    pools = ceil_div(pool + settings.num_spec, pool)
    return pool * (1 << (pools - 1).bit_length())


def _recurrent_bytes(model: ModelStates, settings: VllmSettings, state: LayerState) -> int:
    recurrent, conv = state.buffers
    drafts = settings.num_spec
    if state.mechanism is Mechanism.KDA and drafts:
        if settings.rules.kda_conv_drafts is None:
            raise EngineRefusedError(
                place="num_spec",
                found=f"{drafts} drafted tokens over a KDA conv window in {settings.rules.version}",
                expected="a version whose rule for it is known",
                fix="name 0.19 or 0.25 and later",
            )
        drafts = drafts if settings.rules.kda_conv_drafts else 0
    held = replace(recurrent, dtype=_state_dtype(model, settings, state)), conv.drafting(drafts)
    return sum(buffer.row_bytes(ranks=_heads(settings)) for buffer in held)


def _state_dtype(model: ModelStates, settings: VllmSettings, state: LayerState) -> DType:
    asked = settings.state_dtype
    if asked is None:
        return model.dtype if model.model_type in MODEL_DTYPE_STATE else state.buffers[0].dtype
    allowed: tuple[DType, ...] = STATE
    if state.mechanism is Mechanism.KDA:
        allowed = KDA_STATE if settings.rules.kda_state_selectable else (DType.F32,)
    if asked not in allowed:
        raise EngineRefusedError(
            place="state_dtype",
            found=f"{asked.value} for a recurrent state in {settings.rules.version}",
            expected=" or ".join(dtype.value for dtype in allowed),
            fix="name one of them, or none for the default",
        )
    return asked


def ensure_divisible(model: ModelStates, settings: VllmSettings) -> None:
    """Refuse rank counts that do not divide the heads, or share a context no ranks repeat.

    Key and value heads may be repeated instead: `tp` may be a multiple of them. Source:
    vllm-project/vllm vllm/config/model.py::ModelConfig.verify_with_parallel_config.
    """
    tp, dcp = settings.tp, settings.dcp
    for heads in model.query_heads:
        if heads % tp:
            raise _indivisible(tp, f"{heads} heads")
    for state in (*model.states, *settings.drafter):
        if state.kind not in (Kind.RECURRENT, Kind.KV, Kind.WINDOW):
            continue
        for _, heads in (block for cut in state.buffers[0].split for block in cut.blocks):
            if heads % tp and (state.kind is Kind.RECURRENT or tp % heads):
                raise _indivisible(tp, f"{heads} {state.kind.value} heads of layer {state.layer}")
            if state.kind is Kind.KV and dcp > max(tp // heads, 1):
                raise _unshareable(dcp, f"{tp} tensor-parallel ranks that repeat {heads} key heads {tp // heads} times")
    if tp % dcp:
        raise _unshareable(dcp, f"{tp} tensor-parallel ranks")


def _unshareable(dcp: int, over: str) -> EngineRefusedError:
    return EngineRefusedError(
        place="dcp",
        found=f"{dcp} over {over}",
        expected="a divisor of the ranks that hold the same rows: they share the context",
        fix="lower dcp or raise tp",
    )


def _indivisible(tp: int, what: str) -> EngineRefusedError:
    return EngineRefusedError(
        place="tp",
        found=f"{tp} ranks for {what}",
        expected="a count that divides them",
        fix="name another tp",
    )
