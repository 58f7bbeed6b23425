"""How a row is stored: the latent's layouts, the index row, and who picks them.

Source: vllm-project/vllm vllm/model_executor/layers/attention/mla_attention.py and
vllm/v1/attention/backends/mla/ for the layouts and the kernels' block sizes;
vllm/model_executor/models/config.py for what `auto` means.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.engines.vllm.refusals import EngineRefusedError
from modelbones.engines.vllm.settings import KvDtype, VllmSettings
from modelbones.engines.vllm.states import Kind, LayerState, ModelStates
from modelbones.units import ceil_div

DS_MLA_LATENT = 512
"""Latent elements the ds_mla layouts are made for."""
FP8_DS_MLA_ROW = 656
"""512 fp8 + 4 fp32 scales + 64 bf16 rope elements; the rope slot is there without rope."""
NVFP4_DS_MLA_ROW = 352
INDEX_BLOCK = 128
"""Index elements that share one fp32 scale."""
INDEX_STATES = {9: 32, 10: 32, 12: 64}
"""Index rows of the paged kernel's page, by compute capability (SM90, SM100, SM12x)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentLayout:
    """How one latent row is stored.

    Attributes:
        name: In the engine's words.
        row_bytes: Bytes stored a token.
        element_bytes: Bytes an element has as the block alignment counts it.
        kernel_block: Tokens of the attention kernel's block.
    """

    name: str
    row_bytes: int
    element_bytes: int
    kernel_block: int


def index_row_bytes(head_dim: int) -> int:
    """Bytes of one index row: fp8 and one fp32 scale for each 128 elements.

    >>> index_row_bytes(128)
    132
    """
    return head_dim + 4 * ceil_div(head_dim, INDEX_BLOCK)


def latent_layout(model: ModelStates, settings: VllmSettings, latent: LayerState) -> LatentLayout:
    """The layout of `latent` under these settings.

    Raises:
        EngineRefusedError: No backend stores it so, or no source tells.
    """
    elements = latent.elements
    if settings.latent_row_bytes is not None:
        row = settings.latent_row_bytes
        return LatentLayout(name=f"{row} bytes", row_bytes=row, element_bytes=1, kernel_block=1)
    sparse = any(state.kind is Kind.INDEX for state in model.states)
    name = _sparse(model, settings, elements) if sparse else _dense(settings)
    match name:
        case KvDtype.FP8_DS_MLA:
            return LatentLayout(name=name.value, row_bytes=FP8_DS_MLA_ROW, element_bytes=1, kernel_block=64)
        case KvDtype.NVFP4_DS_MLA:
            return LatentLayout(name=name.value, row_bytes=NVFP4_DS_MLA_ROW, element_bytes=1, kernel_block=64)
    width = 1 if name is KvDtype.FP8 else 2
    kernel = 32 if sparse and settings.capability == 10 else 1
    return LatentLayout(name=name.value, row_bytes=elements * width, element_bytes=width, kernel_block=kernel)


def _dense(settings: VllmSettings) -> KvDtype:
    if settings.kv_dtype in (KvDtype.FP8_DS_MLA, KvDtype.NVFP4_DS_MLA):
        raise EngineRefusedError(
            place="kv_dtype",
            found=f"{settings.kv_dtype.value} for latent attention without an indexer",
            expected="auto, bf16 or fp8",
            fix="the ds_mla layouts belong to sparse attention",
        )
    return KvDtype.FP8 if settings.kv_dtype is KvDtype.FP8 else KvDtype.BF16


def _sparse(model: ModelStates, settings: VllmSettings, elements: int) -> KvDtype:
    """The layout a sparse latent gets, by what the device's backends can read."""
    asked, rules, capability = settings.kv_dtype, settings.rules, settings.capability
    nope = elements == DS_MLA_LATENT
    if capability < 9:
        raise _refused(f"compute capability {capability}", "9 or more: no sparse latent backend is older")
    if asked is KvDtype.NVFP4_DS_MLA:
        return asked
    if capability == 12:
        if asked is KvDtype.BF16:
            raise _refused("bf16 on compute capability 12", "auto, fp8 or fp8_ds_mla: its backend stores that only")
        return KvDtype.FP8_DS_MLA
    if asked is KvDtype.FP8_DS_MLA and nope and capability == 9 and rules.refuses_ds_mla_nope_sm90:
        raise _refused(f"fp8_ds_mla without rope on SM90 in {rules.version}", "auto or fp8, or 0.32 and later")
    if asked is KvDtype.FP8 and capability == 9 and not nope:
        return KvDtype.FP8_DS_MLA
    if asked is KvDtype.AUTO:
        default_fp8 = nope and capability in rules.latent_default_fp8 and model.model_type.startswith("glm5_next")
        return KvDtype.FP8 if default_fp8 else KvDtype.BF16
    return asked


def _refused(found: str, expected: str) -> EngineRefusedError:
    return EngineRefusedError(
        place="kv_dtype", found=found, expected=expected, fix="name another dtype, device or version"
    )
