"""Shapes and types of one layer of each kind, every one derived by hand from the published widths."""

from __future__ import annotations

from modelbones.dtypes import DType
from modelbones.families.registry import build, read_config
from modelbones.tensors import TensorPattern
from tests.published import edited, in_text, nested

F32_LEAVES = (
    "A_log",
    "dt_bias",
    "hc_attn_base",
    "hc_attn_scale",
    "hc_ffn_base",
    "hc_ffn_scale",
    "e_score_correction_bias",
)


def _patterns(**edits: object) -> dict[str, TensorPattern]:
    patterns = build(read_config(edited(nested(), in_text(edits)))).patterns
    named = {}
    for pattern in patterns:
        for layer in pattern.layers or (None,):
            named[pattern.name.replace("{layer}", str(layer))] = pattern
    return named


PATTERNS = _patterns()


def _of_layer(index: int) -> dict[str, tuple[int, ...]]:
    stem = f"model.language_model.layers.{index}."
    return {name.removeprefix(stem): p.shape for name, p in PATTERNS.items() if name.startswith(stem)}


H = 4096
NORMS = {"input_layernorm.weight": (H,), "post_attention_layernorm.weight": (H,)}
# 4 streams: 4 weights in, 4 out and 4 x 4 between = 24 rows over 4 x 4,096 columns.
HYPER = {
    f"hc_{site}_{leaf}": shape
    for site in ("attn", "ffn")
    for leaf, shape in (("fn", (24, 16_384)), ("base", (24,)), ("scale", (3,)))
}
# 64 heads of 128.
KDA = {
    "self_attn.q_proj.weight": (8192, H),
    "self_attn.k_proj.weight": (8192, H),
    "self_attn.v_proj.weight": (8192, H),
    "self_attn.b_proj.weight": (64, H),
    "self_attn.f_a_proj.weight": (128, H),
    "self_attn.f_b_proj.weight": (8192, 128),
    "self_attn.g_a_proj.weight": (128, H),
    "self_attn.g_b_proj.weight": (8192, 128),
    "self_attn.q_conv1d.weight": (8192, 1, 4),
    "self_attn.k_conv1d.weight": (8192, 1, 4),
    "self_attn.v_conv1d.weight": (8192, 1, 4),
    "self_attn.A_log": (64,),
    "self_attn.dt_bias": (8192,),
    "self_attn.o_norm.weight": (128,),
    "self_attn.o_proj.weight": (H, 8192),
}
# 64 heads of 256 query, 256 key and 256 value elements; an indexer of 32 heads of 128.
DSA = {
    "self_attn.q_a_proj.weight": (1536, H),
    "self_attn.q_a_layernorm.weight": (1536,),
    "self_attn.q_b_proj.weight": (16_384, 1536),
    "self_attn.kv_a_proj_with_mqa.weight": (512, H),
    "self_attn.kv_a_layernorm.weight": (512,),
    "self_attn.kv_b_proj.weight": (32_768, 512),
    "self_attn.o_proj.weight": (H, 16_384),
    "self_attn.indexer.wq_b.weight": (4096, 1536),
    "self_attn.indexer.wk.weight": (128, H),
    "self_attn.indexer.k_norm.weight": (128,),
    "self_attn.indexer.k_norm.bias": (128,),
    "self_attn.indexer.weights_proj.weight": (32, H),
    "self_attn.indexer.index_kpool_compress_ape": (4, 128),
    "self_attn.indexer.index_kpool_compress_gate": (128, H),
}
DENSE = {
    "mlp.gate_proj.weight": (12_288, H),
    "mlp.up_proj.weight": (12_288, H),
    "mlp.down_proj.weight": (H, 12_288),
}
ROUTED = {
    "mlp.gate.weight": (288, H),
    "mlp.gate.e_score_correction_bias": (288,),
    **{
        f"mlp.{block}.{leaf}_proj.weight": shape
        for block in ("experts.{expert}", "shared_experts")
        for leaf, shape in (("gate", (2048, H)), ("up", (2048, H)), ("down", (H, 2048)))
    },
}
MTP = {
    "eh_proj.weight": (H, 8192),
    "enorm.weight": (H,),
    "hnorm.weight": (H,),
    "shared_head.norm.weight": (H,),
    # Two copies a release may leave out.
    "embed_tokens.weight": (154_880, H),
    "shared_head.head.weight": (154_880, H),
}


def test_the_shapes_of_a_dense_kda_layer() -> None:
    assert _of_layer(0) == {**KDA, **NORMS, **HYPER, **DENSE}


def test_the_shapes_of_a_routed_kda_layer() -> None:
    assert _of_layer(44) == {**KDA, **NORMS, **HYPER, **ROUTED}


def test_the_shapes_of_a_sparse_layer() -> None:
    assert _of_layer(43) == {**DSA, **NORMS, **HYPER, **ROUTED}


def test_the_shapes_of_the_mtp_layer() -> None:
    assert _of_layer(45) == {**DSA, **NORMS, **MTP, **ROUTED}


def test_the_shapes_of_no_layer() -> None:
    outside = {name: p.shape for name, p in PATTERNS.items() if ".layers." not in name and ".visual." not in name}
    assert outside == {
        "model.language_model.embed_tokens.weight": (154_880, H),
        "model.language_model.norm.weight": (H,),
        "lm_head.weight": (154_880, H),
    }


def test_the_shapes_of_the_tower() -> None:
    tower = {name: p.shape for name, p in PATTERNS.items() if name.startswith("model.visual.")}
    block = {
        "norm1.weight": (1024,),
        "norm2.weight": (1024,),
        "attn.qkv.weight": (3072, 1024),
        "attn.qkv.bias": (3072,),
        "attn.proj.weight": (1024, 1024),
        "attn.proj.bias": (1024,),
        "attn.q_norm.weight": (64,),
        "attn.k_norm.weight": (64,),
        "mlp.gate_proj.weight": (4096, 1024),
        "mlp.gate_proj.bias": (4096,),
        "mlp.up_proj.weight": (4096, 1024),
        "mlp.up_proj.bias": (4096,),
        "mlp.down_proj.weight": (1024, 4096),
        "mlp.down_proj.bias": (1024,),
    }
    around = {
        "patch_embed.proj.weight": (1024, 3, 2, 14, 14),
        "patch_embed.proj.bias": (1024,),
        "post_layernorm.weight": (1024,),
        "downsample.weight": (4096, 1024, 2, 2),
        "downsample.bias": (4096,),
        "merger.proj.weight": (4096, 4096),
        "merger.post_projection_norm.weight": (4096,),
        "merger.post_projection_norm.bias": (4096,),
        "merger.gate_proj.weight": (10_240, 4096),
        "merger.up_proj.weight": (10_240, 4096),
        "merger.down_proj.weight": (4096, 10_240),
    }
    blocks = {f"model.visual.blocks.{index}.{leaf}": shape for index in range(24) for leaf, shape in block.items()}
    assert tower == {**blocks, **{f"model.visual.{leaf}": shape for leaf, shape in around.items()}}
    assert len(tower) == 24 * 14 + 11 == 347


def test_attention_biases_have_their_projections_rows() -> None:
    biased = _patterns(attention_bias=True)
    added = {name: biased[name].shape for name in biased.keys() - PATTERNS.keys() if ".layers.3." in name}
    stem = "model.language_model.layers.3.self_attn."
    assert added == {
        f"{stem}q_a_proj.bias": (1536,),
        f"{stem}kv_a_proj_with_mqa.bias": (512,),
        f"{stem}o_proj.bias": (4096,),
    }


def test_the_five_small_roles_are_kept_in_f32_and_bf16_is_a_risk_with_its_reason() -> None:
    for name, pattern in PATTERNS.items():
        if name.endswith(F32_LEAVES):
            assert pattern.permitted.dtypes == (DType.F32,)
            assert pattern.permitted.risky == (DType.BF16,)
            assert pattern.permitted.risk
            assert ("18/23 to 1/23" in pattern.permitted.risk) == (".hc_" in name)
        else:
            assert pattern.permitted.dtypes == (DType.BF16, DType.F16, DType.F32)
            assert pattern.permitted.risky == ()


def test_a_release_stores_its_own_dtype_where_it_is_permitted() -> None:
    norm = PATTERNS["lm_head.weight"].permitted
    assert [norm.stored(dtype) for dtype in (DType.BF16, DType.F16, DType.F32)] == [DType.BF16, DType.F16, DType.F32]
    assert norm.stored(DType.F8_E4M3) is DType.BF16
    assert PATTERNS["model.language_model.layers.0.self_attn.A_log"].permitted.stored(DType.BF16) is DType.F32
