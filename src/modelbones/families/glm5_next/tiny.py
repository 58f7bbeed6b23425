"""A tiny `glm5_next` config of the same shape, for loaders' tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.families.shrinking import resized
from modelbones.families.stacks.shrink import SIZES, small_text

_TEXT = {
    **SIZES,
    "head_dim": 0,
    "qk_head_dim": 32,
    "qk_rope_head_dim": 0,
    "linear_num_heads": 4,
    "linear_head_dim": 32,
}
# transformers fills absent ids with the release's, which are past a small vocabulary: these are always written.
_ENDS = {"pad_token_id": 0, "eos_token_id": 2}
_VISION = {
    "depth": 2,
    "hidden_size": 64,
    "num_heads": 4,
    "intermediate_size": 128,
    "image_size": 56,
    "out_hidden_size": 128,
    "projection_intermediate_size": 128,
}
_TOKENS = {
    "image_token_id": 10,
    "video_token_id": 11,
    "image_start_token_id": 12,
    "image_end_token_id": 13,
    "video_start_token_id": 14,
    "video_end_token_id": 15,
}


def tiny(raw: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """`raw` with its first `num_layers` layers and small sizes; the pool and the streams stay.

    A pool wider than 16 tokens is kept, and the selection with it.
    """
    small = {**raw, **_TOKENS} if isinstance(raw.get("vision_config"), Mapping) else resized(raw, _TOKENS)
    text = dict(small.get("text_config") or small)
    kpool = text.get("index_kpool", 4)
    sizes = {**_TEXT, "index_topk": max(_TEXT["index_topk"] // kpool, 1) * kpool}
    text = {**small_text(text, num_layers, sizes=sizes, first_index=0), **_ENDS}
    if isinstance(small.get("vision_config"), Mapping):
        small["vision_config"] = resized(small["vision_config"], _VISION)
    return {**small, "text_config": text} if "text_config" in small else {**small, **text}
