"""Pipeline stages: sizes by hand, and who holds what stands outside the layers."""

from __future__ import annotations

import pytest

from modelbones.plan.stages import stages
from modelbones.tensors import Role
from tests.plan.asking import skeleton


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(1, [45]), (2, [23, 22]), (3, [15, 15, 15]), (4, [11, 11, 12, 11]), (6, [7, 7, 8, 8, 8, 7]), (45, [1] * 45)],
)
def test_layers_that_do_not_divide_go_to_the_last_stages_but_the_very_last(count: int, sizes: list[int]) -> None:
    """45 = 4 x 11 + 1: stage 2 of 0 to 3 gets it; 45 = 6 x 7 + 3: stages 2, 3 and 4."""
    cut = stages(skeleton(), count)
    assert [len(stage.layers) for stage in cut] == sizes
    assert [layer.index for stage in cut for layer in stage.layers] == list(range(45))


def roles(stage: int) -> set[Role]:
    return {pattern.role for pattern in stages(skeleton(), 4)[stage].outer}


def test_the_embedding_and_the_tower_come_first_the_head_and_the_mtp_layer_last() -> None:
    cut = stages(skeleton(), 4)
    assert roles(0) == {Role.EMBEDDINGS}
    assert roles(1) == roles(2) == set()
    assert roles(3) == {Role.FINAL_NORM, Role.LM_HEAD}
    assert [stage.mtp is not None for stage in cut] == [False, False, False, True]
    assert [bool(stage.tower) for stage in cut] == [True, False, False, False]


def test_a_head_that_is_the_embedding_is_on_the_last_stage_too() -> None:
    """The last stage of Gemma-3-4B once held no embedding and no head: 1.3 GB too little."""
    model = skeleton("gemma-3-4b")
    first, last = stages(model, 2)
    for stage in (first, last):
        assert [p.role for p in stage.outer if p.role is Role.EMBEDDINGS] == [Role.EMBEDDINGS]


def test_an_mtp_layer_that_drafts_embeds_on_the_last_stage() -> None:
    last = stages(skeleton(), 2, with_mtp=True)[-1]
    assert Role.EMBEDDINGS in {pattern.role for pattern in last.outer}
