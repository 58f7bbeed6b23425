"""Kimi-K2.5 to K2.7: the text model of Kimi-K2 inside a wrapper with a vision tower that is not judged.

Source: transformers 5.23 modeling_kimi_k25.py; moonshotai/Kimi-K2.5 config.json and
model.safetensors.index.json; vllm-project/vllm vllm/model_executor/models/kimi_k25.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelbones.config import MISSING, Section
from modelbones.families.family import Family
from modelbones.families.model_config import concluded
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
TEXT_TYPES = ("deepseek_v3", "kimi_k2")


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiK25Config(LatentConfig):
    """A `kimi_k25` config: that of its text model, and whether it declares a vision tower."""

    has_vision: bool


def read(top: Section) -> KimiK25Config:
    """The typed config of `top`; everything wrong with it is raised at once."""
    text = top.section("text_config")
    if text is None:
        if not top.has("text_config"):
            top.ledger.fault("text_config", found=MISSING, expected="an object with the sizes of the text model")
        top.ledger.raise_faults()
        text = top
    word = text.values.get("model_type")
    if word is not None and word not in TEXT_TYPES:
        top.ledger.fault(text.path_of("model_type"), found=word, expected=" or ".join(f'"{t}"' for t in TEXT_TYPES))
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
    ),
    tiny=tiny,
)
