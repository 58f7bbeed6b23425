"""A tiny `glm5_next` config of the same shape, for loaders' tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.families.shrinking import first_layers, resized

_TEXT = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 64,
    "qk_head_dim": 32,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "index_n_heads": 2,
    "index_head_dim": 32,
    "index_topk": 16,
    "n_routed_experts": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "num_experts_per_token": 2,
    "moe_intermediate_size": 128,
    "linear_num_heads": 4,
    "linear_head_dim": 32,
    "max_position_embeddings": 4096,
    "bos_token_id": 1,
}
# transformers fills absent ids with the release's, which are past a small vocabulary: these are always written.
_ENDS = {"pad_token_id": 0, "eos_token_id": 2}
_LINEAR = {"num_heads": 4, "head_dim": 32}
_VISION = {
    "depth": 2,
    "hidden_size": 64,
    "num_heads": 4,
    "intermediate_size": 128,
    "image_size": 56,
    "out_hidden_size": 128,
    "projection_intermediate_size": 128,
}
_TOKENS = {
    "image_token_id": 10,
    "video_token_id": 11,
    "image_start_token_id": 12,
    "image_end_token_id": 13,
    "video_start_token_id": 14,
    "video_end_token_id": 15,
}
_PER_LAYER = ("layer_types", "mlp_layer_types", "indexer_types", "index_topk_pattern")
_INDICES = ("kda_layers", "full_attn_layers")


def tiny(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """`raw` with its first `num_layers` layers and small sizes; the pool and the streams stay.

    A pool wider than 16 tokens is kept, and the selection with it.
    """
    small = {**raw, **_TOKENS} if isinstance(raw.get("vision_config"), Mapping) else resized(raw, _TOKENS)
    text = dict(small.get("text_config") or small)
    kpool = text.get("index_kpool", 4)
    sizes = {**_TEXT, "index_topk": max(_TEXT["index_topk"] // kpool, 1) * kpool}
    text = first_layers({**resized(text, sizes), **_ENDS}, num_layers, per_layer=_PER_LAYER)
    if isinstance(text.get("first_k_dense_replace"), int):
        text["first_k_dense_replace"] = min(text["first_k_dense_replace"], num_layers)
    if isinstance(text.get("linear_attn_config"), Mapping):
        linear = resized(text["linear_attn_config"], _LINEAR)
        text["linear_attn_config"] = first_layers(linear, num_layers, indices=_INDICES)
    if isinstance(small.get("vision_config"), Mapping):
        small["vision_config"] = resized(small["vision_config"], _VISION)
    return {**small, "text_config": text} if "text_config" in small else {**small, **text}
