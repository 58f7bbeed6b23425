"""Kimi-K2.5 to K2.7: the text model of Kimi-K2 inside a wrapper with a vision tower that is not judged.

Source: transformers 5.23 modeling_kimi_k25.py; moonshotai/Kimi-K2.5 config.json and
model.safetensors.index.json; vllm-project/vllm vllm/model_executor/models/kimi_k25.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelbones.config import Section
from modelbones.families.family import Family
from modelbones.families.model_config import concluded
from modelbones.families.reading.decoder import text_section
from modelbones.families.stacks.latent import LatentConfig, LatentForm, latent_skeleton, read_latent
from modelbones.families.stacks.shrink import tiny
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group

FORM = LatentForm(
    source="moonshotai/Kimi-K2.5 config.json",
    null_rank=True,
    prefix="language_model.model.",
    head="language_model.lm_head",
    open_prefixes=(("vision_tower.", Group.VISION), ("mm_projector.", Group.VISION)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiK25Config(LatentConfig):
    """A `kimi_k25` config: that of its text model, and whether it declares a vision tower."""

    has_vision: bool


def read(top: Section) -> KimiK25Config:
    """The typed config of `top`; everything wrong with it is raised at once."""
    text = text_section(top, "deepseek_v3", "kimi_k2")
    has_vision = top.section("vision_config") is not None
    fields = read_latent(text, FORM)
    return concluded(KimiK25Config, top, text, source=FORM.source, has_vision=has_vision, **fields)


def build(config: KimiK25Config) -> Skeleton:
    """The skeleton of a typed config."""
    return latent_skeleton(config, FORM if config.has_vision else replace(FORM, open_prefixes=()))


FAMILY = Family(
    name="kimi_k25",
    model_types=("kimi_k25",),
    title="Kimi-K2.5, Kimi-K2.7",
    read=read,
    build=build,
    verified=(
        "text names and shapes at full size against transformers 5.23 on the meta device, "
        "its layers' name corrected; the vision tower is listed, not judged",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
    ),
    tiny=tiny,
)
