"""A tiny config of the same shape for the stacks with latents or KDA, for loaders' tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.families.shrinking import first_layers, resized

SIZES = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 64,
    "qk_head_dim": 48,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "head_dim": 16,
    "index_n_heads": 2,
    "index_head_dim": 32,
    "index_topk": 16,
    "n_routed_experts": 8,
    "num_experts": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "num_experts_per_token": 2,
    "n_group": 1,
    "num_expert_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 128,
    "max_position_embeddings": 4096,
    "model_max_length": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_COMPRESSED = {
    **SIZES,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "o_groups": 2,
    "o_lora_rank": 32,
    "sliding_window": 16,
}
_LINEAR = {"num_heads": 4, "head_dim": 32}
_PER_LAYER = ("layer_types", "mlp_layer_types", "indexer_types", "index_topk_pattern")
_INDICES = ("kda_layers", "full_attn_layers")


def tiny(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """`raw` with its first `num_layers` layers and small sizes, in the text section where there is one."""
    text = raw.get("text_config")
    if isinstance(text, Mapping):
        return {**raw, "text_config": small_text(text, num_layers)}
    return small_text(raw, num_layers)


def tiny_compressed(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """The same for DeepSeek-V4, whose list of ratios goes on past the last layer."""
    small = first_layers(resized(raw, _COMPRESSED), num_layers, per_layer=_PER_LAYER)
    ratios, deep = raw.get("compress_ratios"), raw.get("num_hidden_layers")
    if isinstance(ratios, list | tuple) and isinstance(deep, int):
        small["compress_ratios"] = [*ratios[:num_layers], *ratios[deep:]]
    if isinstance(small.get("num_hash_layers"), int):
        small["num_hash_layers"] = min(small["num_hash_layers"], num_layers)
    return small


def small_text(
    raw: Mapping[str, Any], num_layers: int, *, sizes: Mapping[str, Any] = SIZES, first_index: int = 1
) -> dict[str, Any]:
    """A text section with its first `num_layers` layers and these sizes.

    `first_index` is what its lists of KDA and full layers call the first layer.
    """
    text = first_layers(resized(raw, sizes), num_layers, per_layer=_PER_LAYER)
    if isinstance(text.get("first_k_dense_replace"), int):
        text["first_k_dense_replace"] = min(text["first_k_dense_replace"], num_layers)
    if isinstance(text.get("linear_attn_config"), Mapping):
        linear = resized(text["linear_attn_config"], _LINEAR)
        text["linear_attn_config"] = first_layers(linear, num_layers, indices=_INDICES, first_index=first_index)
    return text
