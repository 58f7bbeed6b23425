"""zai-org/GLM-4.5-Air.

Source: its config.json; THUDM/slime scripts/models/glm4.5-106B-A12B.sh has the same sizes.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Glm4MoeForCausalLM"],
    "model_type": "glm4_moe",
    "dtype": "bfloat16",
    "vocab_size": 151552,
    "hidden_size": 4096,
    "intermediate_size": 10944,
    "num_hidden_layers": 46,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attention_bias": True,
    "use_qk_norm": False,
    "first_k_dense_replace": 1,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1408,
    "num_nextn_predict_layers": 1,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
