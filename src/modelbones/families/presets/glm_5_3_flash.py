"""zai-org/GLM-5.3-Flash, unquantised.

Source: its config.json at revision eb9eb208eb0d988989d07a6a12d0fdeb5f52574a; the unquantised
release is zai-org/GLM-5.3-Flash-BF16.
"""

from typing import Any

_NUM_LAYERS = 45
_SPARSE_LAYERS = list(range(3, _NUM_LAYERS, 4))
_KDA_LAYERS = [index for index in range(_NUM_LAYERS) if index not in _SPARSE_LAYERS]

CONFIG: dict[str, Any] = {
    "architectures": ["Glm5NextForConditionalGeneration"],
    "model_type": "glm5_next",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "glm5_next_text",
        "dtype": "bfloat16",
        "vocab_size": 154880,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": _NUM_LAYERS,
        "layer_types": [
            "deepseek_sparse_attention" if index in _SPARSE_LAYERS else "linear_attention"
            for index in range(_NUM_LAYERS)
        ],
        "linear_attn_config": {
            "num_heads": 64,
            "head_dim": 128,
            "short_conv_kernel_size": 4,
            "gate_lower_bound": -5.0,
            "kda_layers": _KDA_LAYERS,
            "full_attn_layers": _SPARSE_LAYERS,
        },
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "attention_bias": False,
        "mla_use_nope": True,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_head_dim": 256,
        "qk_nope_head_dim": 256,
        "qk_rope_head_dim": 0,
        "v_head_dim": 256,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
        "index_kpool": 4,
        "index_kpool_compress": True,
        "index_kpool_always_select_tail": True,
        "indexer_types": ["full"] * _NUM_LAYERS,
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * (_NUM_LAYERS - 3),
        "first_k_dense_replace": 3,
        "n_routed_experts": 288,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "mhc": True,
        "hc_mult": 4,
        "hc_eps": 1e-06,
        "hc_sinkhorn_iters": 20,
        "hidden_act": "silu",
        "swiglu_limit": 10.0,
        "rms_norm_eps": 1e-05,
        "max_position_embeddings": 1048576,
        "num_nextn_predict_layers": 1,
        "tie_word_embeddings": False,
    },
    "vision_config": {
        "model_type": "glm5_next_vision",
        "depth": 24,
        "hidden_size": 1024,
        "num_heads": 16,
        "intermediate_size": 4096,
        "in_channels": 3,
        "image_size": 448,
        "patch_size": 14,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 4096,
        "projection_intermediate_size": 10240,
        "attention_bias": True,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-05,
        "swiglu_limit": 10.0,
    },
}
