"""Read the `vision_config` of a `glm5_next` config."""

from __future__ import annotations

from modelbones.config import Absent, Section, flag, integer
from modelbones.parts.glm_vision import GlmVisionSizes

_MAX_BLOCKS = 100_000
_SIZES = (
    "hidden_size",
    "num_heads",
    "intermediate_size",
    "in_channels",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "out_hidden_size",
    "projection_intermediate_size",
)


def read_vision(top: Section) -> GlmVisionSizes | None:
    """The tower's sizes; None for a text-only config.

    Every size is required: engines fill an absent `out_hidden_size` with 1536 or 4096.
    """
    vision = top.section("vision_config")
    if vision is None:
        return None
    top.ledger.read.add(vision.path_of("model_type"))
    sizes = {"depth": integer(vision.at("depth"), maximum=_MAX_BLOCKS)}
    sizes.update((name, integer(vision.at(name))) for name in _SIZES)
    bias = flag(
        vision.at("attention_bias"),
        absent=Absent(
            value=True, meaning="true: the blocks have biases", source="transformers 5.23 Glm5NextVisionConfig"
        ),
    )
    width, heads = vision.at("hidden_size"), vision.at("num_heads")
    if top.ledger.is_sound(width, heads) and sizes["hidden_size"] % sizes["num_heads"]:
        expected = f"a multiple of num_heads, {sizes['num_heads']}"
        top.ledger.fault(width.path, found=sizes["hidden_size"], expected=expected)
    return GlmVisionSizes(attention_bias=bias, **sizes)
