"""mistralai/Mistral-7B-v0.1.

Source: its config.json; transformers 5.23 configuration_mistral.py has the same sizes as defaults.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "dtype": "bfloat16",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "sliding_window": 4096,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}
