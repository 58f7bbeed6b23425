"""Pipeline stages: which layers each holds, as vLLM cuts them.

Layers that do not divide go one each to the last stages but the very last, which has the
head. Source: vllm-project/vllm vllm/distributed/utils.py::get_pp_indices. The last stage holds
the embedding too where it is the head, or where the MTP layer embeds what it drafts.
"""

from __future__ import annotations

from dataclasses import replace

from modelbones.skeleton import Skeleton
from modelbones.tensors import Role


def stages(skeleton: Skeleton, count: int, *, with_mtp: bool = False) -> tuple[Skeleton, ...]:
    """`skeleton` cut into `count` stages: embedding and tower on the first, head and MTP on the last."""
    if count == 1:
        return (skeleton,)
    sizes = _sizes(len(skeleton.layers), count)
    has_head = any(pattern.role is Role.LM_HEAD and pattern.required for pattern in skeleton.outer)
    embeds_last = with_mtp or not has_head
    cut, start = [], 0
    for number, size in enumerate(sizes):
        is_first, is_last = number == 0, number == count - 1
        outer = tuple(
            pattern
            for pattern in skeleton.outer
            if (is_first or (is_last and embeds_last) if pattern.role is Role.EMBEDDINGS else is_last)
        )
        cut.append(
            replace(
                skeleton,
                layers=skeleton.layers[start : start + size],
                mtp=skeleton.mtp if is_last else None,
                outer=outer,
                tower=skeleton.tower if is_first else (),
            )
        )
        start += size
    return tuple(cut)


def _sizes(layers: int, count: int) -> list[int]:
    each, over = divmod(layers, count)
    sizes = [each] * count
    for number in range(2, over + 2):
        sizes[-number] += 1
    return sizes
