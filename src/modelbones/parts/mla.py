"""Multi-head latent attention, dense or behind a sparse indexer."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import TOKEN, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import in_heads, matrix, out_heads, vector
from modelbones.parts.part import Part, StateKind
from modelbones.ranks import Axis, split
from modelbones.tensors import Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaSizes:
    """The widths of an MLA block, in the words of its config.

    `q_lora_rank` is None where one matrix makes the query.
    """

    hidden_size: int
    num_attention_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    attention_bias: bool = False


def mla_tensors(sizes: MlaSizes, role: Role) -> tuple[TensorPattern, ...]:
    """The projections and norms of MLA: 7 with a low-rank query, 5 without.

    `kv_b_proj` holds, for each head, its key rows and then its value rows. With
    `attention_bias` the projections no head owns have one. Source: zai-org/GLM-5.3-Flash
    model.safetensors.index.json; transformers 5.23 modeling_glm5_next.py::Glm5NextTextAttention
    and modeling_deepseek_v3.py::DeepseekV3Attention.
    """
    heads, rank = sizes.num_attention_heads, sizes.q_lora_rank
    kv_width = heads * (sizes.qk_nope_head_dim + sizes.v_head_dim)
    kv_a_width = sizes.kv_lora_rank + sizes.qk_rope_head_dim
    o_width = heads * sizes.v_head_dim
    biased = (("kv_a_proj_with_mqa", kv_a_width), ("o_proj", sizes.hidden_size))
    return (
        *_query(sizes, role),
        matrix("self_attn.kv_a_proj_with_mqa", kv_a_width, sizes.hidden_size, role),
        vector("self_attn.kv_a_layernorm.weight", sizes.kv_lora_rank, role),
        matrix("self_attn.kv_b_proj", kv_width, sizes.kv_lora_rank, role, cut=out_heads(kv_width, heads)),
        matrix("self_attn.o_proj", sizes.hidden_size, o_width, role, cut=in_heads(o_width, heads)),
        *((vector("self_attn.q_a_proj.bias", rank, role),) if sizes.attention_bias and rank else ()),
        *(vector(f"self_attn.{name}.bias", size, role) for name, size in biased if sizes.attention_bias),
    )


def _query(sizes: MlaSizes, role: Role) -> tuple[TensorPattern, ...]:
    heads, rank = sizes.num_attention_heads, sizes.q_lora_rank
    width = heads * (sizes.qk_nope_head_dim + sizes.qk_rope_head_dim)
    if rank is None:
        return (matrix("self_attn.q_proj", width, sizes.hidden_size, role, cut=out_heads(width, heads)),)
    return (
        matrix("self_attn.q_a_proj", rank, sizes.hidden_size, role),
        vector("self_attn.q_a_layernorm.weight", rank, role),
        matrix("self_attn.q_b_proj", width, rank, role, cut=out_heads(width, heads)),
    )


def mla(sizes: MlaSizes) -> Part:
    """A dense MLA block: it attends to every earlier token through its latent row."""
    return Part(
        name="mla",
        tensors=mla_tensors(sizes, Role.MLA),
        buffers=latent_rows("mla_kv", sizes),
        state=StateKind.LATENT_KV,
    )


def latent_rows(term: str, sizes: MlaSizes) -> tuple[Buffer, ...]:
    """What one token leaves: its latent, and the rotary part of its key where there is one.

    Source: transformers 5.23 modeling_deepseek_v3.py, which caches the two apart; engines
    that store one row of both widths hold the same bytes.
    """
    rope = sizes.qk_rope_head_dim
    return latent(term, sizes.kv_lora_rank), *((rope_key(term, rope),) if rope else ())


def latent(term: str, kv_lora_rank: int) -> Buffer:
    """The latent row all heads share, `[kv_lora_rank]` bf16 a token, in the KV pages."""
    return _row("latent", term, kv_lora_rank)


def rope_key(term: str, qk_rope_head_dim: int) -> Buffer:
    """The rotary part of the key, which all heads share, `[qk_rope_head_dim]` bf16 a token."""
    return _row("rope_key", term, qk_rope_head_dim)


def _row(name: str, term: str, width: int) -> Buffer:
    return Buffer(
        name=name,
        term=term,
        shape=(width,),
        dtype=DType.BF16,
        per=TOKEN,
        home=Home.PAGED,
        rewind=Rewind.TRUNCATE,
        split=split(Axis.LATENT, 0, width),
    )
