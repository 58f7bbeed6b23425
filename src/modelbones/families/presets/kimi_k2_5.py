"""moonshotai/Kimi-K2.5, unquantised.

Source: its config.json for the text model. The tower is not judged, and its sizes are
those of transformers 5.23 configuration_kimi_k25.py.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "dtype": "bfloat16",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "kimi_k2",
        "vocab_size": 163840,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "attention_bias": False,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "norm_topk_prob": True,
        "scoring_func": "sigmoid",
        "routed_scaling_factor": 2.827,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-05,
        "rope_theta": 50000.0,
        "max_position_embeddings": 262144,
        "num_nextn_predict_layers": 0,
        "tie_word_embeddings": False,
    },
    "vision_config": {
        "model_type": "kimi_k25_vision",
        "patch_size": 14,
        "num_hidden_layers": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "merge_kernel_size": [2, 2],
    },
}
