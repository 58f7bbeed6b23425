"""moonshotai/Kimi-Linear-48B-A3B-Instruct.

Source: its config.json; the layer lists number the layers from 1.
"""

from typing import Any

_FULL_LAYERS = [4, 8, 12, 16, 20, 24, 27]
_KDA_LAYERS = [number for number in range(1, 28) if number not in _FULL_LAYERS]

CONFIG: dict[str, Any] = {
    "architectures": ["KimiLinearForCausalLM"],
    "model_type": "kimi_linear",
    "dtype": "bfloat16",
    "vocab_size": 163840,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 27,
    "linear_attn_config": {
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "kda_layers": _KDA_LAYERS,
        "full_attn_layers": _FULL_LAYERS,
    },
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "mla_use_nope": True,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "num_experts": 256,
    "num_shared_experts": 1,
    "num_experts_per_token": 8,
    "moe_intermediate_size": 1024,
    "num_expert_group": 1,
    "topk_group": 1,
    "moe_renormalize": True,
    "moe_router_activation_func": "sigmoid",
    "routed_scaling_factor": 2.446,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "model_max_length": 1048576,
    "num_nextn_predict_layers": 0,
    "bos_token_id": 163584,
    "eos_token_id": 163586,
    "pad_token_id": 163839,
    "tie_word_embeddings": False,
}
