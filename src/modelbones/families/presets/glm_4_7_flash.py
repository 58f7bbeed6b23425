"""zai-org/GLM-4.7-Flash.

Source: its config.json; transformers 5.23 configuration_glm4_moe_lite.py has the same sizes as its defaults.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Glm4MoeLiteForCausalLM"],
    "model_type": "glm4_moe_lite",
    "dtype": "bfloat16",
    "vocab_size": 154880,
    "hidden_size": 2048,
    "intermediate_size": 10240,
    "num_hidden_layers": 47,
    "num_attention_heads": 20,
    "num_key_value_heads": 20,
    "attention_bias": False,
    "q_lora_rank": 768,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "first_k_dense_replace": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1536,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "noaux_tc",
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.8,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "max_position_embeddings": 202752,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
}
