"""GLM-5 to GLM-5.3: sparse latent attention; from GLM-5.2 on, layers share the selection of an earlier one.

Source: transformers 5.23 configuration_glm_moe_dsa.py and modeling_glm_moe_dsa.py; zai-org/GLM-5.2 config.json.
"""

from __future__ import annotations

from modelbones.config import Section
from modelbones.families.family import Family
from modelbones.families.model_config import concluded
from modelbones.families.stacks.latent import LatentConfig, LatentForm, latent_skeleton, read_latent
from modelbones.families.stacks.shrink import tiny
from modelbones.skeleton import Skeleton

FORM = LatentForm(source="transformers 5.23 configuration_glm_moe_dsa.py", has_indexer=True, shares_indexers=True)


def read(top: Section) -> LatentConfig:
    """The typed config of `top`; everything wrong with it is raised at once."""
    return concluded(LatentConfig, top, top, source=FORM.source, **read_latent(top, FORM))


def build(config: LatentConfig) -> Skeleton:
    """The skeleton of a typed config."""
    return latent_skeleton(config, FORM)


FAMILY = Family(
    name="glm_moe_dsa",
    model_types=("glm_moe_dsa",),
    title="GLM-5, GLM-5.2, GLM-5.3",
    read=read,
    build=build,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
    tiny=tiny,
)
