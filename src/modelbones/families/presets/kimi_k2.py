"""moonshotai/Kimi-K2-Instruct, unquantised.

Source: its config.json, whose model_type is a word of its own for DeepSeek-V3's architecture.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "kimi_k2",
    "torch_dtype": "bfloat16",
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
    "rms_norm_eps": 1e-06,
    "rope_theta": 50000.0,
    "max_position_embeddings": 131072,
    "num_nextn_predict_layers": 0,
    "tie_word_embeddings": False,
}
