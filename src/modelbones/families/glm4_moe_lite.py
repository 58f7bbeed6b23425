"""GLM-4.7-Flash: dense latent attention in a small DeepSeek-V3 frame, one MTP layer.

Source: transformers 5.23 modeling_glm4_moe_lite.py; zai-org/GLM-4.7-Flash config.json.
"""

from __future__ import annotations

from modelbones.config import Section
from modelbones.families.family import Family
from modelbones.families.model_config import concluded
from modelbones.families.stacks.latent import LatentConfig, LatentForm, latent_skeleton, read_latent
from modelbones.families.stacks.shrink import tiny
from modelbones.skeleton import Skeleton

FORM = LatentForm(source="transformers 5.23 configuration_glm4_moe_lite.py", null_rank=True)


def read(top: Section) -> LatentConfig:
    """The typed config of `top`; everything wrong with it is raised at once."""
    return concluded(LatentConfig, top, top, source=FORM.source, **read_latent(top, FORM))


def build(config: LatentConfig) -> Skeleton:
    """The skeleton of a typed config."""
    return latent_skeleton(config, FORM)


FAMILY = Family(
    name="glm4_moe_lite",
    model_types=("glm4_moe_lite",),
    title="GLM-4.7-Flash",
    read=read,
    build=build,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
    tiny=tiny,
)
