"""One tensor changed in any build: one finding, of the right code and name, and no other.

What a finding is called:
- a weight that is gone while its sidecars are there: `scale`, the weight's contract name;
- a required sidecar that is gone: `scale`, the sidecar; an optional one: nothing;
- a sidecar of another scheme put in: `scale`, the sidecar;
- any other name gone: `missing`; under another name: `renamed`, the name that was wanted;
- another shape or type: `shape` or `dtype`, the name as it is stored.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.audit import Audit
from modelbones.dtypes import DType
from modelbones.quant.form import Form, base_of, stored_name
from modelbones.quant.registry import FORMS, RECIPES, SIDECAR_LEAVES
from tests import release
from tests.audit.builds import BUILDS, Build
from tests.audit.stores import judge, said, tiny_config
from tests.release import Stores

PLAIN = release.bf16(release.TINY)
IS_CLAIMED = st.booleans()
NAMES = st.sampled_from(sorted(BUILDS))
FAR = ("F64", "BOOL", "I16", "U16", "F8_E5M2")
"""Types that no tensor of any scheme has."""


class Place(NamedTuple):
    """What one stored name is: of which weight, in which form, as which leaf."""

    weight: str
    form: Form | None
    leaf: str

    @property
    def is_required(self) -> bool:
        sidecars = () if self.form is None else self.form.sidecars
        return all(sidecar.is_required for sidecar in sidecars if sidecar.leaf == self.leaf)

    @property
    def is_sidecar(self) -> bool:
        return self.form is not None and self.leaf != self.form.leaf


@cache
def places(name: str) -> dict[str, Place]:
    """Every stored name of a build, told from the unquantised release and the build's own forms."""
    build = BUILDS[name]
    found: dict[str, Place] = {}
    for weight in PLAIN:
        form = build.form_of(weight)
        leaves = ("weight",) if form is None else (form.leaf, *(sidecar.leaf for sidecar in form.sidecars))
        for leaf in leaves:
            stored = (
                weight if form is None else stored_name(weight, leaf) if leaf == form.leaf else base_of(weight) + leaf
            )
            if stored in build.stores:
                found[stored] = Place(weight, form, leaf)
    assert found.keys() == build.stores.keys()
    return found


def judged(build: Build, stores: Stores, is_claimed: bool) -> Audit:
    quantization: dict[str, Any] = build.claim if is_claimed else {"bits": 4}
    return judge(stores, tiny_config(), quantization=quantization)


def errors(result: Audit) -> list[tuple[str, str]]:
    return [(code, name) for severity, code, name in said(result) if severity == "error"]


def without(stores: Stores, name: str) -> Stores:
    return {key: value for key, value in stores.items() if key != name}


@pytest.mark.parametrize("is_claimed", [True, False])
@pytest.mark.parametrize("name", sorted(BUILDS))
def test_a_build_that_nothing_was_done_to_has_no_finding(name: str, is_claimed: bool) -> None:
    result = judged(BUILDS[name], BUILDS[name].stores, is_claimed)
    assert errors(result) == []
    assert result.parameters == judge(PLAIN, tiny_config()).parameters
    by_group = sum(group.nbytes for group in result.groups.values())
    by_role = sum(size.nbytes for size in result.roles.values())
    assert result.nbytes == by_group == by_role == sum(result.schemes.values())
    assert result.tensors == sum(group.tensors for group in result.groups.values())


@given(NAMES, IS_CLAIMED, st.data())
def test_a_name_that_is_gone(name: str, is_claimed: bool, data: st.DataObject) -> None:
    """Bug: without a claim, a weight of one sidecar without it was of the wrong type."""
    build = BUILDS[name]
    gone = data.draw(st.sampled_from(sorted(build.stores)))
    place = places(name)[gone]
    wanted = [("missing", gone)]
    if place.is_sidecar:
        wanted = [("scale", gone)] if place.is_required else []
    elif place.form is not None:
        wanted = [("scale", place.weight)]
    assert errors(judged(build, without(build.stores, gone), is_claimed)) == wanted


@given(NAMES, IS_CLAIMED, st.data())
def test_a_name_that_stands_elsewhere(name: str, is_claimed: bool, data: st.DataObject) -> None:
    build = BUILDS[name]
    old = data.draw(st.sampled_from(sorted(build.stores)))
    place, new = places(name)[old], f"{old}.moved"
    wanted = [("renamed", old if place.is_sidecar else place.weight)]
    if not place.is_required:
        wanted = [("unexpected", new)]
    assert errors(judged(build, {**without(build.stores, old), new: build.stores[old]}, is_claimed)) == wanted


@given(NAMES, IS_CLAIMED, st.data())
def test_a_tensor_of_another_type(name: str, is_claimed: bool, data: st.DataObject) -> None:
    build = BUILDS[name]
    changed = data.draw(st.sampled_from(sorted(build.stores)))
    dtype = data.draw(st.sampled_from(FAR))
    stores = {**build.stores, changed: (dtype, build.stores[changed][1])}
    assert errors(judged(build, stores, is_claimed)) == [("dtype", changed)]


@given(NAMES, IS_CLAIMED, st.data())
def test_a_packed_tensor_of_another_schemes_type(name: str, is_claimed: bool, data: st.DataObject) -> None:
    """Bug: a weight in the type of another scheme had the wrong shape, for that scheme."""
    build = BUILDS[name]
    packed = sorted(stored for stored, place in places(name).items() if place.form is not None)
    changed = data.draw(st.sampled_from(packed))
    place = places(name)[changed]
    assert place.form is not None
    types = next((s.dtypes for s in place.form.sidecars if s.leaf == place.leaf), place.form.dtypes)
    others = [t for t in ("U8", "F8_E4M3", "F8_E8M0", "I32", "U32", "F32", "BF16") if DType(t) not in types]
    dtype = data.draw(st.sampled_from(others))
    shape = build.stores[changed][1]
    if not place.is_sidecar and dtype in ("F32", "BF16"):
        return  # a plain weight of another shape, or one beside scales: see below
    assert errors(judged(build, {**build.stores, changed: (dtype, shape)}, is_claimed)) == [("dtype", changed)]


@given(NAMES, IS_CLAIMED, st.data())
def test_a_tensor_turned_or_of_another_shape(name: str, is_claimed: bool, data: st.DataObject) -> None:
    build = BUILDS[name]
    turnable = sorted(n for n, (_, shape) in build.stores.items() if len(shape) > 1 and shape[0] != shape[-1])
    changed = data.draw(st.sampled_from(turnable))
    dtype, shape = build.stores[changed]
    other = data.draw(st.sampled_from([shape[::-1], (*shape, 1), (shape[0] + 1, *shape[1:])]))
    place = places(name)[changed]
    if place.form is not None and _is_another_forms(place, dtype, other):
        return
    assert errors(judged(build, {**build.stores, changed: (dtype, other)}, is_claimed)) == [("shape", changed)]


def _is_another_forms(place: Place, dtype: str, shape: tuple[int, ...]) -> bool:
    """Whether a weight of that shape is right in another form: turned, GPTQ is AWQ."""
    logical = PLAIN[place.weight][1]
    return any(
        form.leaf == place.leaf and DType(dtype) in form.dtypes and form.shape(logical) == shape for form in FORMS
    )


FOREIGN = sorted(SIDECAR_LEAVES)


@given(NAMES, IS_CLAIMED, st.data())
def test_a_sidecar_of_another_scheme_has_nothing_to_scale(name: str, is_claimed: bool, data: st.DataObject) -> None:
    build = BUILDS[name]
    weight = data.draw(st.sampled_from(sorted(w for w in PLAIN if w.endswith(".weight"))))
    form = build.form_of(weight)
    own = set() if form is None else {sidecar.leaf for sidecar in form.sidecars}
    leaf = data.draw(st.sampled_from([each for each in FOREIGN if each not in own]))
    added = base_of(weight) + leaf
    stored = data.draw(st.sampled_from([("F32", ()), ("BF16", (7,)), ("U8", (3, 3))]))
    assert errors(judged(build, {**build.stores, added: stored}, is_claimed)) == [("scale", added)]


SCHEMES = [recipe.form for name, recipe in RECIPES.items() if name != "mxfp4-blocks"]


@given(NAMES, IS_CLAIMED, st.data())
def test_one_weight_in_another_scheme_is_no_fault_but_a_conflict_where_a_claim_speaks(
    name: str, is_claimed: bool, data: st.DataObject
) -> None:
    build = BUILDS[name]
    weight = data.draw(st.sampled_from(sorted(w for w in PLAIN if build.form_of(w) is not None)))
    old = build.form_of(weight)
    assert old is not None
    form = data.draw(st.sampled_from([each for each in SCHEMES if each.scheme != old.scheme]))
    logical = PLAIN[weight][1]
    mine = {stored for stored, place in places(name).items() if place.weight == weight}
    stores = {stored: each for stored, each in build.stores.items() if stored not in mine}
    shape = form.shape(logical)
    if shape is None or any(s.shapes[0](logical) is None for s in form.sidecars if s.is_required):
        return
    stores[stored_name(weight, form.leaf)] = (form.dtypes[0].value, shape)
    for sidecar in form.sidecars:
        beside = sidecar.shapes[0](logical)
        if sidecar.is_required and beside is not None:
            stores[base_of(weight) + sidecar.leaf] = (sidecar.dtypes[0].value, beside)
    result = judged(build, stores, is_claimed)
    found = stored_name(weight, form.leaf)
    assert errors(result) == ([("quant_conflict", found)] if is_claimed and not build.is_silent else [])
    assert result.is_complete
    assert result.parameters == judge(PLAIN, tiny_config()).parameters


@given(NAMES, st.data())
def test_one_weight_left_plain_is_a_conflict_where_a_claim_speaks(name: str, data: st.DataObject) -> None:
    build = BUILDS[name]
    weight = data.draw(st.sampled_from(sorted(w for w in PLAIN if build.form_of(w) is not None)))
    mine = {stored for stored, place in places(name).items() if place.weight == weight}
    stores = {stored: each for stored, each in build.stores.items() if stored not in mine} | {weight: PLAIN[weight]}
    assert errors(judged(build, stores, is_claimed=False)) == []
    wanted = [] if build.names_no_modules else [("quant_conflict", weight)]
    assert errors(judged(build, stores, is_claimed=True)) == wanted


@given(NAMES, IS_CLAIMED, st.data())
def test_a_packed_weight_stored_plain_beside_its_sidecars_is_one_error(
    name: str, is_claimed: bool, data: st.DataObject
) -> None:
    build = BUILDS[name]
    weights = sorted(s for s, place in places(name).items() if place.form is not None and place.leaf == "weight")
    if not weights:
        return
    weight = data.draw(st.sampled_from(weights))
    found = errors(judged(build, {**build.stores, weight: PLAIN[weight]}, is_claimed))
    if is_claimed and not build.names_no_modules:
        assert found == [("dtype", weight)]
    else:
        assert {code for code, _ in found} == {"scale"}


def test_at_full_size_one_fault_of_the_nvfp4_release_is_one_error() -> None:
    from tests.variants import experts_of, nvfp4
    from tests.variants import packed as pack

    full = pack(nvfp4, experts_of(*range(3, 46)))
    assert len(full) == 113_074
    weight = f"{release.LAYERS}20.mlp.experts.77.down_proj.weight"
    changes: list[tuple[Stores, tuple[str, str]]] = [
        (without(full, weight), ("scale", weight)),
        (without(full, f"{weight}_scale_2"), ("scale", f"{weight}_scale_2")),
        ({**full, weight: ("F8_E4M3", full[weight][1])}, ("dtype", weight)),
        ({**full, f"{weight}_scale": ("F8_E4M3", (128, 4096))}, ("shape", f"{weight}_scale")),
        ({**without(full, f"{weight}_scale"), "x": full[f"{weight}_scale"]}, ("renamed", f"{weight}_scale")),
    ]
    for stores, wanted in changes:
        result = judge(stores, quantization={"bits": 4})
        assert [(code, name) for _, code, name in said(result)] == [wanted]
        assert not result.is_complete
