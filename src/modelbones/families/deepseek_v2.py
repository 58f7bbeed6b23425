"""DeepSeek-V2, V2-Lite and Coder-V2: dense latent attention, softmax-routed MLPs without a selection bias.

Source: transformers 5.23 modeling_deepseek_v2.py; deepseek-ai/DeepSeek-V2 modeling_deepseek.py.
"""

from __future__ import annotations

from modelbones.config import Section
from modelbones.families.family import Family
from modelbones.families.model_config import concluded
from modelbones.families.stacks.latent import LatentConfig, LatentForm, latent_skeleton, read_latent
from modelbones.families.stacks.shrink import tiny
from modelbones.parts.mlp import MoeNames
from modelbones.skeleton import Skeleton

FORM = LatentForm(
    source="transformers 5.23 configuration_deepseek_v2.py", null_rank=True, has_mtp=False, moe=MoeNames(bias=None)
)


def read(top: Section) -> LatentConfig:
    """The typed config of `top`; everything wrong with it is raised at once."""
    return concluded(LatentConfig, top, top, source=FORM.source, **read_latent(top, FORM))


def build(config: LatentConfig) -> Skeleton:
    """The skeleton of a typed config."""
    return latent_skeleton(config, FORM)


FAMILY = Family(
    name="deepseek_v2",
    model_types=("deepseek_v2",),
    title="DeepSeek-V2, DeepSeek-Coder-V2",
    read=read,
    build=build,
    verified=(
        "trunk names and shapes at full size against transformers 5.23 on the meta device",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
    tiny=tiny,
)
