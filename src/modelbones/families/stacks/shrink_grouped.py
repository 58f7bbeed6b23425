"""A tiny config of the same shape for stacks of attention, GDN and Mamba-2, for loaders' tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.families.shrinking import first_layers, resized

_SIZES = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "attention_head_dim": 32,
    "sliding_window": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "n_groups": 2,
    "ssm_state_size": 16,
    "num_experts": 8,
    "num_local_experts": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 96,
    "moe_shared_expert_intermediate_size": 96,
    "moe_latent_size": 64,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_PER_LAYER = ("layer_types", "layers_block_type", "hybrid_override_pattern")


def tiny(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """`raw` with its first `num_layers` layers and small sizes, in the text section where there is one.

    Periods and kernels stay, so that every kind of layer keeps its place.
    """
    text = raw.get("text_config")
    if isinstance(text, Mapping):
        return {**raw, "text_config": _text(text, num_layers)}
    return _text(raw, num_layers)


def _text(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    text = first_layers(resized(raw, _SIZES), num_layers, per_layer=_PER_LAYER, indices=("mlp_only_layers",))
    if isinstance(text.get("first_k_dense_replace"), int):
        text["first_k_dense_replace"] = min(text["first_k_dense_replace"], num_layers)
    return text
