"""meta-llama/Llama-3.1-8B.

Source of the sizes: oumi-ai/oumi configs/recipes/llama3_1/README.md, which lists its config.json.
"""

from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "attention_bias": False,
    "mlp_bias": False,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
