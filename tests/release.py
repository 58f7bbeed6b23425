"""Every tensor of GLM-5.3-Flash, listed by hand: names, types and shapes, from no code of the package.

Source: headers of zai-org/GLM-5.3-Flash (FP8) and zai-org/GLM-5.3-Flash-BF16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Stores = dict[str, tuple[str, tuple[int, ...]]]
"""Name -> (dtype as a header writes it, shape)."""

TRUNK = "model.language_model."
LAYERS = f"{TRUNK}layers."
FP8_ATTENTION = ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "o_proj")


class Sizes(NamedTuple):
    """The sizes names and shapes depend on. `sparse`: indices of the sparse-attention layers."""

    layers: int = 45
    sparse: tuple[int, ...] = tuple(range(3, 45, 4))
    dense: int = 3
    hidden: int = 4096
    vocab: int = 154880
    heads: int = 64
    kda_width: int = 8192
    kda_heads: int = 64
    kda_dim: int = 128
    q_lora: int = 1536
    kv_lora: int = 512
    head_dim: int = 256
    index_heads: int = 32
    index_dim: int = 128
    experts: int = 288
    expert_width: int = 2048
    dense_width: int = 12288
    vision_blocks: int = 24
    vision_hidden: int = 1024
    vision_heads: int = 16
    vision_inner: int = 4096
    merger_inner: int = 10240


FULL = Sizes()
TINY = Sizes(
    layers=5,
    sparse=(3,),
    hidden=128,
    vocab=512,
    heads=4,
    kda_width=128,
    kda_heads=4,
    kda_dim=32,
    q_lora=64,
    kv_lora=64,
    head_dim=32,
    index_heads=2,
    index_dim=32,
    experts=8,
    expert_width=128,
    dense_width=256,
    vision_blocks=2,
    vision_hidden=64,
    vision_heads=4,
    vision_inner=128,
    merger_inner=128,
)
"""What `synth --shrink` makes of the published config."""


def bf16(sizes: Sizes = FULL) -> Stores:
    """The unquantised release: F32 for five small roles, BF16 for all else."""
    stores: Stores = {}
    for name, shape in _listed(sizes):
        leaf = name.rpartition(".")[2]
        is_small = leaf in ("A_log", "dt_bias", "e_score_correction_bias") or leaf.endswith(("_base", "_scale"))
        stores[name] = ("F32" if is_small else "BF16", shape)
    return stores


def fp8(sizes: Sizes = FULL) -> Stores:
    """The FP8 release: one factor for each block of 128 x 128 beside each weight that is packed."""
    stores: Stores = {}
    for name, (dtype, shape) in bf16(sizes).items():
        if is_fp8(name, sizes):
            rows, columns = shape
            stores[name] = ("F8_E4M3", shape)
            stores[f"{name}_scale_inv"] = ("F32", (-(-rows // 128), -(-columns // 128)))
        else:
            stores[name] = (dtype, shape)
    return stores


def is_fp8(name: str, sizes: Sizes = FULL) -> bool:
    """Whether the FP8 release packs this weight: every gated MLP of the text, four projections of sparse attention."""
    if not name.startswith(LAYERS) or not name.endswith("_proj.weight"):
        return name.startswith(LAYERS) and name.endswith("kv_a_proj_with_mqa.weight")
    parts = name.removeprefix(LAYERS).split(".")
    if parts[1] == "mlp":
        return True
    return len(parts) == 4 and parts[2] in FP8_ATTENTION and int(parts[0]) in (*sizes.sparse, sizes.layers)


def skip_list() -> list[str]:
    """The 1,509 entries of `modules_to_not_convert` in the published FP8 config, by their rule."""
    plain = [name for name in bf16() if not is_fp8(name)]
    text = [name.removesuffix(".weight").replace(TRUNK, "model.") for name in plain if ".visual." not in name]
    vision = [name.removesuffix(".weight").removeprefix("model.") for name in plain if ".visual." in name]
    fused = [
        f"model.layers.{layer}.self_attn.{module}"
        for layer in range(FULL.layers)
        if layer not in FULL.sparse
        for module in ("fused_qkvbfg_a_proj", "qkv_proj")
    ]
    generic = [
        *("attn_mha", "attn_mqa", "dt_bias", "hyper_connection", "mapping_proj"),
        *("model.visual", "router", "visual", "weights_proj"),
    ]
    return sorted([*text, *vision, *fused, *generic])


def _listed(sizes: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{TRUNK}embed_tokens.weight", (sizes.vocab, sizes.hidden)
    yield f"{TRUNK}norm.weight", (sizes.hidden,)
    yield "lm_head.weight", (sizes.vocab, sizes.hidden)
    for layer in range(sizes.layers):
        stem = f"{LAYERS}{layer}."
        yield from _under(stem, _norms(sizes))
        yield from _under(f"{stem}self_attn.", _dsa(sizes) if layer in sizes.sparse else _kda(sizes))
        yield from _under(stem, _hyper_connection(sizes))
        if layer < sizes.dense:
            yield from _under(f"{stem}mlp.", _gated(sizes.hidden, sizes.dense_width))
        else:
            yield from _under(f"{stem}mlp.", _moe(sizes))
    mtp = f"{LAYERS}{sizes.layers}."
    yield from _under(mtp, _norms(sizes))
    yield from _under(f"{mtp}self_attn.", _dsa(sizes))
    yield from _under(f"{mtp}mlp.", _moe(sizes))
    yield f"{mtp}eh_proj.weight", (sizes.hidden, 2 * sizes.hidden)
    yield from ((f"{mtp}{name}.weight", (sizes.hidden,)) for name in ("enorm", "hnorm", "shared_head.norm"))
    yield from _under("model.visual.", _vision(sizes))


Listed = Iterator[tuple[str, tuple[int, ...]]]


def _under(stem: str, listed: Listed) -> Listed:
    return ((stem + name, shape) for name, shape in listed)


def _norms(sizes: Sizes) -> Listed:
    yield "input_layernorm.weight", (sizes.hidden,)
    yield "post_attention_layernorm.weight", (sizes.hidden,)


def _kda(sizes: Sizes) -> Listed:
    width, hidden, dim = sizes.kda_width, sizes.hidden, sizes.kda_dim
    for x in "qkv":
        yield f"{x}_proj.weight", (width, hidden)
        yield f"{x}_conv1d.weight", (width, 1, 4)
    yield "b_proj.weight", (sizes.kda_heads, hidden)
    for x in "fg":
        yield f"{x}_a_proj.weight", (dim, hidden)
        yield f"{x}_b_proj.weight", (width, dim)
    yield "A_log", (sizes.kda_heads,)
    yield "dt_bias", (width,)
    yield "o_norm.weight", (dim,)
    yield "o_proj.weight", (hidden, width)


def _dsa(sizes: Sizes) -> Listed:
    width = sizes.heads * sizes.head_dim
    yield "q_a_proj.weight", (sizes.q_lora, sizes.hidden)
    yield "q_a_layernorm.weight", (sizes.q_lora,)
    yield "q_b_proj.weight", (width, sizes.q_lora)
    yield "kv_a_proj_with_mqa.weight", (sizes.kv_lora, sizes.hidden)
    yield "kv_a_layernorm.weight", (sizes.kv_lora,)
    yield "kv_b_proj.weight", (2 * width, sizes.kv_lora)
    yield "o_proj.weight", (sizes.hidden, width)
    dim = sizes.index_dim
    yield "indexer.wq_b.weight", (sizes.index_heads * dim, sizes.q_lora)
    yield "indexer.wk.weight", (dim, sizes.hidden)
    yield "indexer.k_norm.weight", (dim,)
    yield "indexer.k_norm.bias", (dim,)
    yield "indexer.weights_proj.weight", (sizes.index_heads, sizes.hidden)
    yield "indexer.index_kpool_compress_ape", (4, dim)
    yield "indexer.index_kpool_compress_gate", (dim, sizes.hidden)


def _hyper_connection(sizes: Sizes) -> Listed:
    for site in ("attn", "ffn"):
        yield f"hc_{site}_fn", (24, 4 * sizes.hidden)
        yield f"hc_{site}_base", (24,)
        yield f"hc_{site}_scale", (3,)


def _gated(hidden: int, width: int) -> Listed:
    yield "gate_proj.weight", (width, hidden)
    yield "up_proj.weight", (width, hidden)
    yield "down_proj.weight", (hidden, width)


def _moe(sizes: Sizes) -> Listed:
    yield "gate.weight", (sizes.experts, sizes.hidden)
    yield "gate.e_score_correction_bias", (sizes.experts,)
    yield from _under("shared_experts.", _gated(sizes.hidden, sizes.expert_width))
    for expert in range(sizes.experts):
        yield from _under(f"experts.{expert}.", _gated(sizes.hidden, sizes.expert_width))


def _vision(sizes: Sizes) -> Listed:
    width, out = sizes.vision_hidden, sizes.hidden
    for block in range(sizes.vision_blocks):
        yield from _under(f"blocks.{block}.", _vision_block(sizes))
    yield "patch_embed.proj.weight", (width, 3, 2, 14, 14)
    yield "patch_embed.proj.bias", (width,)
    yield "post_layernorm.weight", (width,)
    yield "downsample.weight", (out, width, 2, 2)
    yield "downsample.bias", (out,)
    yield "merger.proj.weight", (out, out)
    yield "merger.post_projection_norm.weight", (out,)
    yield "merger.post_projection_norm.bias", (out,)
    yield from _under("merger.", _gated(out, sizes.merger_inner))


def _vision_block(sizes: Sizes) -> Listed:
    width, inner = sizes.vision_hidden, sizes.vision_inner
    yield "norm1.weight", (width,)
    yield "norm2.weight", (width,)
    for name, rows, columns in (
        ("attn.qkv", 3 * width, width),
        ("attn.proj", width, width),
        ("mlp.gate_proj", inner, width),
        ("mlp.up_proj", inner, width),
        ("mlp.down_proj", width, inner),
    ):
        yield f"{name}.weight", (rows, columns)
        yield f"{name}.bias", (rows,)
    yield "attn.q_norm.weight", (width // sizes.vision_heads,)
    yield "attn.k_norm.weight", (width // sizes.vision_heads,)
