"""The grid's and the logs' models as the allocator sees them, hyper-parameters re-typed.

Source: each release's published config.json. Only the records matter here, so a model is
its layers' buffers and nothing else; tests of the mapping compare them with the skeletons.
"""

from __future__ import annotations

from collections.abc import Iterable

from modelbones.buffers import Buffer
from modelbones.dtypes import DType
from modelbones.engines.vllm import Kind, LayerState, Mechanism, ModelStates
from modelbones.parts.attention import AttentionSizes, keys_and_values
from modelbones.parts.gdn import GdnSizes, gdn
from modelbones.parts.indexer import index_key, indexer_rows
from modelbones.parts.kda import kda
from modelbones.parts.mamba2 import Mamba2Sizes, mamba2
from modelbones.parts.mla import latent, rope_key

Layer = tuple[Kind, Mechanism | None, tuple[Buffer, ...]]


def full(kv_heads: int, head_dim: int) -> list[Layer]:
    return [(Kind.KV, None, keys_and_values(_attention(kv_heads, head_dim)))]


def window(kv_heads: int, head_dim: int, tokens: int) -> list[Layer]:
    return [(Kind.WINDOW, None, keys_and_values(_attention(kv_heads, head_dim), window_tokens=tokens))]


def _attention(kv_heads: int, head_dim: int) -> AttentionSizes:
    return AttentionSizes(hidden_size=1, num_attention_heads=kv_heads, num_key_value_heads=kv_heads, head_dim=head_dim)


def kda_layer(heads: int) -> list[Layer]:
    part = kda(hidden_size=1, num_heads=heads, head_dim=128, kernel=4)
    return [(Kind.RECURRENT, Mechanism.KDA, part.buffers)]


def gdn_layer(key_heads: int, value_heads: int) -> list[Layer]:
    sizes = GdnSizes(
        hidden_size=1,
        linear_num_key_heads=key_heads,
        linear_num_value_heads=value_heads,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_conv_kernel_dim=4,
    )
    return [(Kind.RECURRENT, Mechanism.GDN, gdn(sizes, fused=False).buffers)]


def mamba2_layer(heads: int, groups: int) -> list[Layer]:
    sizes = Mamba2Sizes(
        hidden_size=1, mamba_num_heads=heads, mamba_head_dim=64, n_groups=groups, ssm_state_size=128, conv_kernel=4
    )
    return [(Kind.RECURRENT, Mechanism.MAMBA2, mamba2(sizes).buffers)]


def latent_layer(rope: int) -> list[Layer]:
    rows = (latent("kv", 512), *((rope_key("kv", rope),) if rope else ()))
    return [(Kind.LATENT, None, rows)]


def dsa_layer(*, indexed: bool = True) -> list[Layer]:
    index: list[Layer] = [(Kind.INDEX, None, (index_key(index_head_dim=128),))] if indexed else []
    return [*latent_layer(64), *index]


def pooled_dsa_layer() -> list[Layer]:
    rows = indexer_rows(index_head_dim=128, index_kpool=4)
    return [*latent_layer(0), (Kind.INDEX, None, rows[:1])]


def states(layers: Iterable[list[Layer]], *, first: int = 0, is_draft: bool = False) -> tuple[LayerState, ...]:
    return tuple(
        LayerState(layer=index, kind=kind, buffers=buffers, mechanism=mechanism, is_draft=is_draft)
        for index, held in enumerate(layers, first)
        for kind, mechanism, buffers in held
    )


def model(
    model_type: str, layers: list[list[Layer]], heads: tuple[int, ...], *, mtp: list[Layer] | None = None
) -> ModelStates:
    return ModelStates(
        model_type=model_type,
        dtype=DType.BF16,
        states=states(layers),
        mtp=states([mtp], first=len(layers)) if mtp else (),
        query_heads=heads,
    )


def every(fourth: list[Layer], other: list[Layer], layers: int) -> list[list[Layer]]:
    """Three of `other`, then one `fourth`, and so on."""
    return [fourth if index % 4 == 3 else other for index in range(layers)]


def _qwen(model_type: str, layers: int, heads: int, kv_heads: int, value_heads: int) -> ModelStates:
    attention = full(kv_heads, 256)
    stack = every(attention, gdn_layer(16, value_heads), layers)
    return model(model_type, stack, tuple(sorted({heads, value_heads})), mtp=attention)


def _glm_5(model_type: str, indexed: tuple[bool, ...]) -> ModelStates:
    return model(model_type, [dsa_layer(indexed=flag) for flag in indexed], (64,), mtp=dsa_layer())


def _kimi() -> ModelStates:
    full_layers = {3, 7, 11, 15, 19, 23, 26}
    return model("kimi_linear", [latent_layer(64) if i in full_layers else kda_layer(32) for i in range(27)], (32,))


def _nemotron() -> ModelStates:
    """NVIDIA-Nemotron-3-Nano-30B: 23 Mamba-2 and 6 attention layers; the rest keep nothing."""
    kinds = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
    held = {"M": mamba2_layer(64, 8), "*": full(2, 128), "E": []}
    return model("nemotron_h", [held[kind] for kind in kinds], (32, 64))


MODELS: dict[str, ModelStates] = {
    "glm53": model("glm5_next", every(pooled_dsa_layer(), kda_layer(64), 45), (64,), mtp=pooled_dsa_layer()),
    "kimi_linear": _kimi(),
    "qwen3_5_27b": _qwen("qwen3_5", 64, 24, 4, 48),
    "qwen3_5_0_8b": _qwen("qwen3_5", 24, 8, 2, 16),
    "qwen3_5_35b": _qwen("qwen3_5_moe", 40, 16, 2, 32),
    "qwen3_next": _qwen("qwen3_next", 48, 16, 2, 32),
    # Only its states: 36 GDN and 12 attention layers.
    "qwen3_8_flash_next": _qwen("qwen3_5", 48, 24, 2, 48),
    # The first layers run an indexer, then one in four: index_topk_freq 4, offset 3.
    "glm_moe_dsa": _glm_5("glm_moe_dsa", tuple(max(index - 2, 0) % 4 == 0 for index in range(78))),
    "glm51": _glm_5("glm_moe_dsa", (True,) * 78),
    "deepseek_v32": model("deepseek_v32", [dsa_layer()] * 61, (128,), mtp=dsa_layer()),
    "llama31_8b": model("llama", [full(8, 128)] * 32, (32,)),
    "llama3_70b": model("llama", [full(8, 128)] * 80, (64,)),
    "qwen3_30b": model("qwen3_moe", [full(4, 128)] * 48, (32,)),
    "qwen3_235b": model("qwen3_moe", [full(4, 128)] * 94, (64,)),
    "gpt_oss_120b": model("gpt_oss", [window(8, 64, 128), full(8, 64)] * 18, (64,)),
    "nemotron_h_30b": _nemotron(),
}
