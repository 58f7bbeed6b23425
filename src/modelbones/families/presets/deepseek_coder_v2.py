"""deepseek-ai/DeepSeek-Coder-V2-Instruct, which has the sizes of DeepSeek-V2.

Source: its config.json.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "torch_dtype": "bfloat16",
    "vocab_size": 102400,
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "attention_bias": False,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_routed_experts": 160,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1536,
    "n_group": 8,
    "topk_group": 3,
    "topk_method": "group_limited_greedy",
    "norm_topk_prob": False,
    "scoring_func": "softmax",
    "routed_scaling_factor": 16.0,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000,
    "max_position_embeddings": 163840,
    "tie_word_embeddings": False,
}
