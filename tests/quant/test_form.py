"""Shapes of packed weights and of what stands beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.dtypes import DType
from modelbones.quant.form import blocks, one, packed, per_group, per_row, same, scalar
from modelbones.quant.registry import FORMS, PACKED_LEAVES, RECIPES, SIDECAR_LEAVES, forms_stored_as
from modelbones.units import ceil_div


@pytest.mark.parametrize(
    ("logical", "wanted"),
    [
        ((300, 130), (3, 2)),
        ((128, 128), (1, 1)),
        ((129, 128), (2, 1)),
        ((1, 1), (1, 1)),
        ((4096, 16384), (32, 128)),
        ((288, 2048, 4096), (288, 16, 32)),
        ((128,), None),
        ((), None),
    ],
)
def test_a_block_of_128_has_one_factor_and_a_short_one_too(
    logical: tuple[int, ...], wanted: tuple[int, ...] | None
) -> None:
    assert blocks(128, 128)(logical) == wanted


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 300), st.integers(1, 300))
def test_blocks_cover_the_weight_and_no_more(height: int, width: int, rows: int, columns: int) -> None:
    found = blocks(rows, columns)((height, width))
    assert found == (ceil_div(height, rows), ceil_div(width, columns))
    assert (found[0] - 1) * rows < height <= found[0] * rows
    assert (found[1] - 1) * columns < width <= found[1] * columns


def test_the_other_rules() -> None:
    assert same((3, 4)) == (3, 4)
    assert scalar((3, 4)) == ()
    assert one((3, 4)) == (1,)
    assert per_row((3, 4)) == (3, 1)
    assert per_row((3,)) is None
    # NVFP4 of [2048, 4096]: two numbers a byte, a factor for each 16 columns.
    assert packed(2)((2048, 4096)) == (2048, 2048)
    assert per_group(16)((2048, 4096)) == (2048, 256)
    assert packed(2)((8, 3)) is None
    assert packed(2)((8,)) is None


def test_every_scheme_that_can_be_written_can_be_judged() -> None:
    for scheme, recipe in RECIPES.items():
        assert recipe.scheme == scheme
        assert recipe.form in FORMS
        assert recipe.form in forms_stored_as(recipe.form.leaf, recipe.form.dtypes[0])
        assert [s for s in recipe.form.sidecars if s.is_required], "a packed weight has something to unpack it by"


def test_no_sidecar_has_the_leaf_of_a_weight() -> None:
    assert "weight" not in SIDECAR_LEAVES
    assert not SIDECAR_LEAVES & set(PACKED_LEAVES)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.scheme}-{form.leaf}-{form.dtypes[0].value}")
def test_every_form_of_a_wide_weight_has_whole_shapes(form: object) -> None:
    from modelbones.quant.form import Form

    assert isinstance(form, Form)
    logical = (8, 2048, 4096) if form.leaf == "blocks" else (2048, 4096)
    stored = form.shape(logical)
    assert stored is not None
    assert all(size > 0 for size in stored)
    for sidecar in form.sidecars:
        shapes = [shape for rule in sidecar.shapes if (shape := rule(logical)) is not None]
        assert shapes
        assert all(sidecar.fits(logical, shape) for shape in shapes)
        assert not sidecar.fits(logical, (7, 7, 7))


def test_gpt_oss_stores_its_experts_turned_in_blocks_of_32() -> None:
    """openai/gpt-oss-20b: 32 experts, gate and up 2880 -> 5760: [32, 5760, 2880 / 32 = 90, 16 bytes]."""
    (form,) = forms_stored_as("blocks", DType.U8)
    assert form.shape((32, 2880, 5760)) == (32, 5760, 90, 16)
    assert form.sidecars[0].fits((32, 2880, 5760), (32, 5760, 90))
    assert form.shape((32, 2881, 5760)) is None
