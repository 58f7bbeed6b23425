"""Which part of a release a name belongs to, when no pattern asks for it."""

from __future__ import annotations

import re

from modelbones.skeleton import Skeleton
from modelbones.tensors import Group

_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_VISION = re.compile(r"(?:^|\.)(?:visual|vision_tower|vision_model|vision_encoder)\.")
_MTP = re.compile(r"(?:^|\.)(?:mtp|mtp_layers)\.")


def group_of(name: str, skeleton: Skeleton) -> Group:
    """The group of a stored name, by its parsed layer index or its module, never by a substring."""
    if _VISION.search(name):
        return Group.VISION
    if _MTP.search(name):
        return Group.MTP
    layer = _LAYER.search(name)
    return Group.MTP if layer and int(layer[1]) >= len(skeleton.layers) else Group.TRUNK
