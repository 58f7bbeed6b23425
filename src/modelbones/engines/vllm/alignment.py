"""The block of a hybrid: wide enough for its recurrent state, in whole kernel blocks.

Logged as "Setting attention block size to N tokens" and "Padding mamba page size by X %".
Source: vllm-project/vllm vllm/platforms/interface.py (vllm/model_executor/models/config.py
through 0.19)::HybridAttentionMambaModelConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from modelbones.engines.vllm.settings import VllmSettings
from modelbones.engines.vllm.states import Kind, Mechanism, ModelStates
from modelbones.engines.vllm.stored import Stored
from modelbones.errors import UsageError
from modelbones.units import ceil_div, round_up

DEFAULT_BLOCK = 16
SPARSE_BLOCK = 64
"""Tokens of a block of sparse attention whose index is not pooled: its paged kernel's page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The block every group is laid out in, and what it costs a recurrent page.

    Attributes:
        block_tokens: Tokens of a block of full attention.
        grain: What `block_tokens` was rounded up to; 0 for a model without recurrence.
        state_page: Bytes of one layer's recurrent and conv state; 0 without.
        padded_page: The same, padded to the attention page the alignment counts.
    """

    block_tokens: int
    grain: int = 0
    state_page: int = 0
    padded_page: int = 0

    @property
    def padding_percent(self) -> float:
        """What padding adds to a recurrent page, in percent, two decimals as logged."""
        if not self.state_page:
            return 0.0
        return round(100 * (self.padded_page - self.state_page) / self.state_page, 2)


def keeps_checkpoints(model: ModelStates, settings: VllmSettings) -> bool:
    """Whether recurrent groups keep one prefill checkpoint more, and align to it.

    Only with prefix caching. KDA's exporting kernel runs from SM90 on; GDN's also asks for
    CUDA 13 past SM90.
    """
    if not settings.prefix_caching:
        return False
    if settings.checkpoints is not None:
        return settings.checkpoints
    if model.model_type not in settings.rules.checkpoint_models:
        return False
    mechanisms = {state.mechanism for state in model.states if state.kind is Kind.RECURRENT}
    if Mechanism.GDN in mechanisms:
        return settings.capability == 9 or (settings.capability > 9 and settings.cuda_major >= 13)
    return Mechanism.MAMBA2 in mechanisms or settings.capability >= 9


def align(model: ModelStates, settings: VllmSettings, stored: tuple[Stored, ...]) -> Alignment:
    """The block of these layers under these settings."""
    pages = [layer.row_bytes for layer in stored if layer.kind is Kind.RECURRENT]
    if not pages:
        return Alignment(block_tokens=_plain_block(settings, stored))
    attention = [layer for layer in stored if layer.kind in (Kind.KV, Kind.LATENT)]
    if not attention:
        # No page to share: the engine keeps one state a sequence, as wide as it is.
        return Alignment(
            block_tokens=settings.block_size or DEFAULT_BLOCK, state_page=max(pages), padded_page=max(pages)
        )
    page, row = max(pages), attention[0].align_bytes
    grain = _grain(model, settings, stored)
    tokens = max(grain * ceil_div(page, grain * row), settings.block_size or 0)
    return Alignment(block_tokens=tokens, grain=grain, state_page=page, padded_page=tokens * row)


def _plain_block(settings: VllmSettings, stored: tuple[Stored, ...]) -> int:
    if settings.block_size is not None:
        return settings.block_size
    kinds = {layer.kind for layer in stored}
    if Kind.INDEX in kinds:
        return SPARSE_BLOCK
    if Kind.LATENT in kinds:
        raise UsageError(
            "vllm: block_size: found none for latent attention; expected one, its default is the "
            "backend's (16, 32, 64 or 128); name the one the engine logs"
        )
    return DEFAULT_BLOCK


def _grain(model: ModelStates, settings: VllmSettings, stored: tuple[Stored, ...]) -> int:
    rules = settings.rules
    is_latent = any(layer.kind is Kind.LATENT for layer in stored)
    if not rules.block_size_in_grain:
        return rules.mla_grain if is_latent else settings.kernel_block
    grain = max(settings.kernel_block, settings.block_size or 0)
    if is_latent:
        grain = max(grain, rules.mla_grain)
    index = next((layer for layer in stored if layer.kind is Kind.INDEX), None)
    if rules.index_grain_is_lcm:
        latents = (layer.kernel_rows for layer in stored if layer.kind is Kind.LATENT)
        kernels = lcm(1 if index is None else index.kernel_rows * index.pool, *latents)
        grain = round_up(grain, kernels)
    elif index is not None:
        grain = round_up(grain, index.kernel_rows * index.pool)
    if keeps_checkpoints(model, settings):
        grain = lcm(grain, rules.grain_of_checkpoints(model.model_type))
    return grain
