"""Qwen/Qwen3.5-27B.

Source of the sizes: THUDM/slime scripts/models/qwen3.5-27B.sh; of `linear_num_value_heads`, a
public loader fixture of the release; of the other linear sizes, transformers 5.23
configuration_qwen3_5.py.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_text",
        "dtype": "bfloat16",
        "vocab_size": 248320,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
        "attn_output_gate": True,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "max_position_embeddings": 262144,
        "mtp_num_hidden_layers": 1,
        "tie_word_embeddings": False,
    },
    "vision_config": {"model_type": "qwen3_5_vision"},
}
