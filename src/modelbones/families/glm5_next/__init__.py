"""GLM-5.3-Flash: KDA and sparse latent attention behind hyper-connections, with one MTP layer."""

from modelbones.families.family import Family
from modelbones.families.glm5_next.config import Glm5NextConfig, read
from modelbones.families.glm5_next.skeleton import Glm5NextTextSkeleton
from modelbones.families.glm5_next.tiny import tiny

FAMILY = Family(
    name="glm5_next",
    model_types=("glm5_next", "glm5_next_text"),
    title="GLM-5.3-Flash",
    read=read,
    build=Glm5NextTextSkeleton.of,
    verified=(
        "names and shapes at full size against transformers 5.23 on the meta device",
        "sizes against the published BF16 and FP8 releases",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
    ),
    tiny=tiny,
)

__all__ = ["FAMILY", "Glm5NextConfig", "Glm5NextTextSkeleton"]
