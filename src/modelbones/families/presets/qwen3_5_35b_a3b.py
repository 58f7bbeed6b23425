"""Qwen/Qwen3.5-35B-A3B.

Source: transformers 5.23 configuration_qwen3_5_moe.py, whose defaults are this release's sizes;
sgl-project/sglang-jax issue 1251 checks them against its model.safetensors.index.json.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "dtype": "bfloat16",
        "vocab_size": 248320,
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        "full_attention_interval": 4,
        "attn_output_gate": True,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "max_position_embeddings": 262144,
        "mtp_num_hidden_layers": 1,
        "tie_word_embeddings": False,
    },
    "vision_config": {"model_type": "qwen3_5_moe_vision"},
}
