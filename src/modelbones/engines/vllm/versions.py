"""vLLM's allocator rules by version: what changed between releases, as data.

Every switch was read in the release's own source and, for 0.19.1, 0.28.0 and 0.30.0 to
0.33.0, compared with what that release's allocator answered on the model classes
themselves (tests/engines/vllm/grid.tsv). Source: vllm-project/vllm
vllm/v1/core/kv_cache_utils.py, vllm/v1/kv_cache_interface.py, vllm/platforms/interface.py
(vllm/model_executor/models/config.py through 0.19), each at the tag of the version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from modelbones.engines.vllm.refusals import UnknownVersionError


class LogFormula(Enum):
    """How "GPU KV cache size: N tokens" is computed."""

    POOL = "pool"
    """floor(blocks / groups) x the smallest block, times DCP: too small for hybrids."""
    REQUESTS = "requests"
    """floor(concurrency x longest context): no pool, and it changes with the context."""


class SparseLayout(Enum):
    """How the groups of a hybrid with an indexer (glm5_next) share blocks."""

    DEDICATED = "dedicated"
    """Recurrent groups alias the latent tensors; a block is the latent and index pages."""
    PACKED = "packed"
    """A block is the widest group, rounded up to the kernels' common alignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one version.

    Attributes:
        version: The release, or the build, they were read in.
        source: Where the figures that confirm them come from.
        log_formula: How the cache size is logged.
        mla_grain: Least alignment of a hybrid's block with latent attention, in tokens.
        block_size_in_grain: Whether a `--block-size` is part of the alignment grain.
        aligns_on_stored_row: Whether fp8_ds_mla aligns on its 656 stored bytes; else on
            one byte an element.
        honours_shared_indexers: Whether layers that share an indexer keep no index rows.
        in_flight_batches: Batches whose tokens a sliding window must still hold.
        reserves_null_block: Whether the too-small check leaves block 0 out.
        kda_conv_drafts: Whether a KDA conv window gains a row a drafted token; None when
            no source was read.
        kda_state_selectable: Whether KDA's recurrent dtype can be chosen; else fp32.
        tail_ring: Whether the tail is a ring that also holds drafted tokens.
        sparse_layout: How glm5_next's groups share blocks; None before that model.
        index_grain_is_lcm: Whether the grain is rounded up to the common multiple of all
            kernels' blocks; else, with an indexer, to the indexer's only.
        checkpoint_models: Models whose recurrent groups keep one block more in align mode.
        checkpoint_grain: Alignment of those checkpoints in tokens, by model; in align mode
            it is part of the grain. Mamba-2's are aligned to one token.
        latent_default_fp8: Compute capabilities (major) where glm5_next's `auto` is fp8.
        refuses_ds_mla_nope_sm90: Whether fp8_ds_mla without rope is refused on SM90.
    """

    version: str
    source: str
    log_formula: LogFormula = LogFormula.REQUESTS
    mla_grain: int = 128
    block_size_in_grain: bool = True
    aligns_on_stored_row: bool = False
    honours_shared_indexers: bool = True
    in_flight_batches: int = 2
    reserves_null_block: bool = True
    kda_conv_drafts: bool | None = True
    kda_state_selectable: bool = True
    tail_ring: bool = True
    sparse_layout: SparseLayout | None = None
    index_grain_is_lcm: bool = False
    checkpoint_models: frozenset[str] = frozenset()
    checkpoint_grain: tuple[tuple[str, int], ...] = ()
    latent_default_fp8: frozenset[int] = frozenset()
    refuses_ds_mla_nope_sm90: bool = False

    def grain_of_checkpoints(self, model_type: str) -> int:
        """Tokens the checkpoints of `model_type` are aligned to, 1 when they are not."""
        return next((grain for model, grain in self.checkpoint_grain if model == model_type), 1)


GRID = "the release's own allocator, run on the model classes"
READ = "read in the release's source"

MAMBA2_MODELS = frozenset({"nemotron_h", "bamba", "granitemoehybrid", "falcon_h1", "mamba2", "zamba2"})
GLM = frozenset({"glm5_next", "glm5_next_text"})
GDN_MODELS = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"})
KIMI_K3 = frozenset({"kimi_k3"})

_V019 = Rules(
    version="0.19.1",
    source=GRID,
    log_formula=LogFormula.POOL,
    mla_grain=64,
    block_size_in_grain=False,
    aligns_on_stored_row=True,
    honours_shared_indexers=False,
    in_flight_batches=1,
    reserves_null_block=False,
    kda_conv_drafts=False,
    kda_state_selectable=False,
)
_V022 = replace(
    _V019,
    version="0.22",
    source=READ,
    log_formula=LogFormula.REQUESTS,
    mla_grain=16,
    block_size_in_grain=True,
    kda_conv_drafts=None,
)
_V025 = replace(_V022, version="0.25", honours_shared_indexers=True, kda_conv_drafts=True)
_V027 = replace(_V025, version="0.27", mla_grain=128, in_flight_batches=2)
_V028 = replace(_V027, version="0.28.0", source=GRID, aligns_on_stored_row=False)
_V030 = replace(
    _V028,
    version="0.30.0",
    reserves_null_block=True,
    kda_state_selectable=True,
    sparse_layout=SparseLayout.DEDICATED,
    tail_ring=False,
    checkpoint_models=KIMI_K3,
    refuses_ds_mla_nope_sm90=True,
)
_V031 = replace(_V030, version="0.31.0", tail_ring=True)
_V032 = replace(
    _V031,
    version="0.32.0",
    sparse_layout=SparseLayout.PACKED,
    index_grain_is_lcm=True,
    checkpoint_models=KIMI_K3 | GLM | MAMBA2_MODELS,
    refuses_ds_mla_nope_sm90=False,
)
_V033 = replace(
    _V032,
    version="0.33.0",
    checkpoint_models=_V032.checkpoint_models | GDN_MODELS,
    checkpoint_grain=(
        *((model, 16) for model in sorted(GLM | KIMI_K3)),
        *((model, 64) for model in sorted(GDN_MODELS)),
    ),
    latent_default_fp8=frozenset({10}),
)
_IMAGE = replace(
    _V031,
    version="0.1.dev20051",
    source="public logs of the GLM-5.3-Flash images of 2026-08 and 2026-09",
    aligns_on_stored_row=True,
    tail_ring=False,
    reserves_null_block=False,
    refuses_ds_mla_nope_sm90=False,
)
"""The builds behind the public GLM-5.3-Flash logs: 0.31's layout with the older alignment."""

RULES: tuple[Rules, ...] = (_V019, _V022, _V025, _V027, _V028, _V030, _V031, _V032, _V033, _IMAGE)


def known_versions() -> tuple[str, ...]:
    """Every version whose rules are known, oldest first; builds of no release last."""
    return tuple(rules.version for rules in RULES)


def rules_of(version: str) -> Rules:
    """The rules of `version`; "0.31" and "0.31.0" are one.

    Raises:
        UnknownVersionError: No source was read for it.
    """
    bare = version.removeprefix("v").split("+")[0]
    for rules in RULES:
        if bare == rules.version or _minor_of(rules.version) == bare or bare == f"{rules.version}.0":
            return rules
    raise UnknownVersionError(version=version, known=known_versions())


def _minor_of(version: str) -> str:
    return ".".join(version.split(".")[:2]) if version.count(".") == 2 and "dev" not in version else version
