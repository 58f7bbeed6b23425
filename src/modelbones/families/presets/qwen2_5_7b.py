"""Qwen/Qwen2.5-7B.

Source: its config.json.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "dtype": "bfloat16",
    "vocab_size": 152064,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "use_sliding_window": False,
    "sliding_window": 131072,
    "max_window_layers": 28,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
