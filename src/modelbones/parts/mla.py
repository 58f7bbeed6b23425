"""Multi-head latent attention, dense or behind a sparse indexer."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import TOKEN, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import in_heads, matrix, out_heads, vector
from modelbones.ranks import Axis, split
from modelbones.tensors import Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaSizes:
    """The widths of an MLA block, in the words of its config."""

    hidden_size: int
    num_attention_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    attention_bias: bool = False


def mla_tensors(sizes: MlaSizes, role: Role) -> tuple[TensorPattern, ...]:
    """The 7 projections and norms of MLA with a low-rank query.

    `kv_b_proj` holds, for each head, its key rows and then its value rows. With
    `attention_bias` the three projections no head owns have one. Source: zai-org/GLM-5.3-Flash
    model.safetensors.index.json; transformers 5.23 modeling_glm5_next.py::Glm5NextTextAttention.
    """
    heads = sizes.num_attention_heads
    q_width = heads * (sizes.qk_nope_head_dim + sizes.qk_rope_head_dim)
    kv_width = heads * (sizes.qk_nope_head_dim + sizes.v_head_dim)
    kv_a_width = sizes.kv_lora_rank + sizes.qk_rope_head_dim
    o_width = heads * sizes.v_head_dim
    biased = (("q_a_proj", sizes.q_lora_rank), ("kv_a_proj_with_mqa", kv_a_width), ("o_proj", sizes.hidden_size))
    return (
        matrix("self_attn.q_a_proj", sizes.q_lora_rank, sizes.hidden_size, role),
        vector("self_attn.q_a_layernorm.weight", sizes.q_lora_rank, role),
        matrix("self_attn.q_b_proj", q_width, sizes.q_lora_rank, role, cut=out_heads(q_width, heads)),
        matrix("self_attn.kv_a_proj_with_mqa", kv_a_width, sizes.hidden_size, role),
        vector("self_attn.kv_a_layernorm.weight", sizes.kv_lora_rank, role),
        matrix("self_attn.kv_b_proj", kv_width, sizes.kv_lora_rank, role, cut=out_heads(kv_width, heads)),
        matrix("self_attn.o_proj", sizes.hidden_size, o_width, role, cut=in_heads(o_width, heads)),
        *(vector(f"self_attn.{name}.bias", size, role) for name, size in biased if sizes.attention_bias),
    )


def latent(term: str, kv_lora_rank: int) -> Buffer:
    """The latent row all heads share, `[kv_lora_rank]` bf16 a token, in the KV pages."""
    return Buffer(
        name="latent",
        term=term,
        shape=(kv_lora_rank,),
        dtype=DType.BF16,
        per=TOKEN,
        home=Home.PAGED,
        rewind=Rewind.TRUNCATE,
        split=split(Axis.LATENT, 0, kv_lora_rank),
    )
