"""The sparse-attention indexer: which earlier tokens, or pools of them, a token attends to.

Without pooling it keeps one key a token, beside the latent in the KV pages. With pooled
keys it keeps three rows a token: the normed key, the compress gate, a validity byte.
Those are kept flat in the sequence's own allocation, reserved once in whole pools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from modelbones.buffers import TOKEN, Buffer, Home, Rewind, token_in_pools
from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.parts.linear import matrix, vector
from modelbones.tensors import Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerSizes:
    """The widths of an indexer, in the words of its config; `index_kpool` is 0 without pooling."""

    hidden_size: int
    q_lora_rank: int
    index_n_heads: int
    index_head_dim: int
    index_kpool: int = 0


def indexer_tensors(sizes: IndexerSizes, role: Role) -> tuple[TensorPattern, ...]:
    """The indexer's 5 tensors, which read the query's low rank; every rank holds all of them whole.

    `k_norm` is a LayerNorm and has a bias. Source: transformers 5.23
    modeling_deepseek_v32.py::DeepseekV32Indexer; zai-org/GLM-5.3-Flash model.safetensors.index.json.
    """
    width = sizes.index_head_dim
    return (
        matrix("self_attn.indexer.wq_b", sizes.index_n_heads * width, sizes.q_lora_rank, role),
        matrix("self_attn.indexer.wk", width, sizes.hidden_size, role),
        vector("self_attn.indexer.k_norm.weight", width, role),
        vector("self_attn.indexer.k_norm.bias", width, role),
        matrix("self_attn.indexer.weights_proj", sizes.index_n_heads, sizes.hidden_size, role),
    )


def pooled_indexer_tensors(sizes: IndexerSizes, role: Role) -> tuple[TensorPattern, ...]:
    """The same, and the 2 tensors that compress a pool of keys into one.

    Source: zai-org/GLM-5.3-Flash model.safetensors.index.json.
    """
    width = sizes.index_head_dim
    return (
        *indexer_tensors(sizes, role),
        TensorPattern(name="self_attn.indexer.index_kpool_compress_ape", shape=(sizes.index_kpool, width), role=role),
        TensorPattern(name="self_attn.indexer.index_kpool_compress_gate", shape=(width, sizes.hidden_size), role=role),
    )


def index_key(*, index_head_dim: int, term: str = "dsa_indexer") -> Buffer:
    """The key an indexer without pooling keeps, `[index_head_dim]` bf16 a token, in the KV pages.

    Source: transformers 5.23 cache_utils.py::DynamicIndexedLayer; vllm-project/vllm
    vllm/model_executor/models/deepseek_v2.py::DeepseekV32IndexerCache pages it beside the latent.
    """
    return Buffer(
        name="indexer.key",
        term=term,
        shape=(index_head_dim,),
        dtype=DType.BF16,
        per=TOKEN,
        home=Home.PAGED,
        rewind=Rewind.TRUNCATE,
    )


def indexer_rows(*, index_head_dim: int, index_kpool: int, term: str = "dsa_indexer") -> tuple[Buffer, ...]:
    """The three buffers of an indexer with pooled keys, each one row a token, reserved in whole pools.

    Source: Metrale/metrale-inference-alpha model-arch glm5next_dsa/state.rs::Glm5NextDsaState.alloc.
    """
    per = token_in_pools(index_kpool)

    def rows(name: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
        return Buffer(name=name, term=term, shape=shape, dtype=dtype, per=per, home=Home.OWNED, rewind=Rewind.TRUNCATE)

    return (
        rows("indexer.k_normed", (index_head_dim,), DType.BF16),
        rows("indexer.gate", (index_head_dim,), DType.BF16),
        rows("indexer.valid", (), DType.U8),
    )


class HasContext(Protocol):
    """What `max_dsa_context` asks of a config."""

    @property
    def max_context(self) -> int:
        """Longest context, in tokens."""

    @property
    def index_kpool(self) -> int:
        """Tokens a pool."""


def dsa_capacity(max_context: int, index_kpool: int) -> int:
    """Rows an indexer cache holds for `max_context` tokens: whole pools, rounded down.

    A pool of 0 counts as 1, as in the seed, for callers that have not read a config yet.

    >>> dsa_capacity(4099, 4)
    4096
    """
    if max_context < 0 or index_kpool < 0:
        raise UsageError(
            f"dsa_capacity: found max_context {max_context} and index_kpool {index_kpool}; "
            "expected 0 or more of each; correct them"
        )
    return token_in_pools(max(index_kpool, 1)).reserved_rows(max_context)


def max_dsa_context(config: HasContext) -> int:
    """Rows one sequence's indexer cache holds under `config`."""
    return dsa_capacity(config.max_context, config.index_kpool)


def indexer_state_bytes(capacity: int, index_head_dim: int) -> int:
    """Bytes one sequence's indexer cache takes in one layer, at `capacity` rows.

    >>> indexer_state_bytes(16384, 128)
    8404992
    """
    if capacity < 0 or index_head_dim < 0:
        raise UsageError(
            f"indexer_state_bytes: found capacity {capacity} and index_head_dim {index_head_dim}; "
            "expected 0 or more of each; correct them"
        )
    return sum(b.nbytes(tokens=capacity) for b in indexer_rows(index_head_dim=index_head_dim, index_kpool=1))
