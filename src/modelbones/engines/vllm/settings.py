"""`VllmSettings`: what a vLLM start is given, with the defaults it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from modelbones.dtypes import DType
from modelbones.engines.vllm.refusals import UnknownVersionError
from modelbones.engines.vllm.states import LayerState
from modelbones.engines.vllm.versions import Rules, rules_of
from modelbones.errors import UsageError

CAPABILITIES = frozenset({7, 8, 9, 10, 12})
"""Major compute capabilities of the GPUs the rules speak of."""


class KvDtype(Enum):
    """What `--kv-cache-dtype` is; the layout a latent gets also depends on the device."""

    AUTO = "auto"
    BF16 = "bf16"
    FP8 = "fp8"
    FP8_DS_MLA = "fp8_ds_mla"
    NVFP4_DS_MLA = "nvfp4_ds_mla"


class SpecMethod(Enum):
    """Who drafts."""

    NONE = "none"
    MTP = "mtp"
    """The model's own MTP layer."""
    DRAFT = "draft"
    """Another model, whose states are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """One vLLM start.

    Attributes:
        version: The release or build, e.g. "0.31"; only those with known rules.
        assume: A known version whose rules stand in for an unknown `version`.
        tp: Tensor-parallel ranks.
        dcp: Decode-context-parallel ranks.
        block_size: `--block-size` in tokens; None lets the engine choose.
        kv_dtype: `--kv-cache-dtype`.
        state_dtype: `--mamba-ssm-cache-dtype`; None is the model's own default.
        spec_method: Who drafts, if anyone.
        num_spec: Tokens drafted a step.
        drafter: The drafter's states, for `SpecMethod.DRAFT`.
        drafter_block: Tokens of the drafter's own blocks where a fork lays its window
            into the latent's slots: they cost block ids and no bytes. None: grouped
            like every other layer.
        prefix_caching: Whether it is on: "align" for recurrent states, else "none".
        max_batched_tokens: `--max-num-batched-tokens`; only sliding windows need it.
        max_model_len: Longest sequence in tokens.
        capability: The GPU's major compute capability: 7, 8, 9 (H100, H200), 10 (B200) or
            12 (RTX 50, GB10). It picks the backend, and so layout and grain.
        cuda_major: Of the CUDA build; 13 gives GDN its prefill backend on 10 and 12.
        kernel_block: Tokens of the attention kernel's smallest block; 16 is FlashAttention's.
        checkpoints: Whether recurrent groups keep a prefill checkpoint; None is the
            version's own rule.
        latent_row_bytes: Bytes of one latent row of a fork's own layout; None is the
            release's.
    """

    version: str
    max_model_len: int
    assume: str | None = None
    tp: int = 1
    dcp: int = 1
    block_size: int | None = None
    kv_dtype: KvDtype = KvDtype.AUTO
    state_dtype: DType | None = None
    spec_method: SpecMethod = SpecMethod.NONE
    num_spec: int = 0
    drafter: tuple[LayerState, ...] = ()
    drafter_block: int | None = None
    prefix_caching: bool = True
    max_batched_tokens: int = 8192
    capability: int = 9
    cuda_major: int = 12
    kernel_block: int = 16
    checkpoints: bool | None = None
    latent_row_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("tp", "dcp", "max_model_len", "max_batched_tokens", "kernel_block"):
            if getattr(self, name) < 1:
                raise UsageError(f"vllm: {name}: found {getattr(self, name)}; expected at least 1; name a real count")
        if self.block_size is not None and self.block_size < 1:
            raise UsageError(f"vllm: block_size: found {self.block_size}; expected at least 1 token; name a real size")
        if self.capability not in CAPABILITIES:
            raise UsageError(
                f"vllm: capability: found {self.capability}; expected 7, 8, 9, 10 or 12; "
                "name the GPU's major compute capability"
            )
        self._ensure_drafting()

    def _ensure_drafting(self) -> None:
        drafts = self.spec_method is not SpecMethod.NONE
        if self.num_spec < 0 or (self.num_spec > 0) is not drafts:
            raise UsageError(
                f"vllm: num_spec: found {self.num_spec} with method {self.spec_method.value}; "
                "expected at least 1 token with a method, 0 without; name both or neither"
            )
        if bool(self.drafter) and self.spec_method is not SpecMethod.DRAFT:
            raise UsageError(
                f"vllm: drafter: found states with method {self.spec_method.value}; "
                "expected them with method draft only; name the method"
            )

    @property
    def rules(self) -> Rules:
        """The rules of `version`, or of `assume` where those of `version` are not known."""
        try:
            return rules_of(self.version)
        except UnknownVersionError:
            if self.assume is None:
                raise
            return rules_of(self.assume)

    @property
    def is_assumed(self) -> bool:
        """Whether another version's rules stand in for those of `version`."""
        try:
            rules_of(self.version)
        except UnknownVersionError:
            return True
        return False
