"""One tensor removed, added, renamed, transposed or retyped is one error, of the right code and name."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.audit import Audit
from modelbones.findings import Code, Severity
from modelbones.tensors import Group
from tests import release
from tests.audit.stores import judge, only_error, quantised, said, tiny_config
from tests.release import Stores
from tests.variants import transformers_names

TINY_BF16 = release.bf16(release.TINY)
TINY_FP8 = release.fp8(release.TINY)
TINY = {"none": TINY_BF16, "fp8": TINY_FP8}
SCHEMES = st.sampled_from(sorted(TINY))
PACKED = sorted(name for name in TINY_FP8 if f"{name}_scale_inv" in TINY_FP8)
PLAIN_BF16 = sorted(name for name, (dtype, _) in TINY_FP8.items() if dtype == "BF16")
SMALL = sorted(name for name, (dtype, _) in TINY_BF16.items() if dtype == "F32")
SCALES = sorted(f"{name}_scale_inv" for name in PACKED)
SQUARE_NOT = sorted(name for name, (_, shape) in TINY_FP8.items() if len(shape) == 2 and shape[0] != shape[1])
EXCLUDED = quantised(name.removesuffix(".weight") for name in TINY_BF16 if name not in PACKED)
BASE = release.LAYERS


def judged(stores: Stores) -> Audit:
    is_fp8 = any(name.endswith("_scale_inv") for name in stores)
    return judge(stores, tiny_config(), quantization=EXCLUDED if is_fp8 else None)


def without(stores: Stores, name: str) -> Stores:
    return {key: value for key, value in stores.items() if key != name}


def code_without(name: str) -> Code:
    """What a missing tensor is: half of a pair is a scale's business."""
    return Code.SCALE if name in PACKED or name in SCALES else Code.MISSING


def test_the_shrunk_releases_are_complete() -> None:
    assert judged(TINY_BF16).findings == ()
    assert judged(TINY_FP8).findings == ()
    assert len(PACKED) == 98
    assert len(TINY_FP8) == 370


@given(st.sampled_from(sorted(TINY_BF16)))
def test_a_tensor_taken_out_of_the_bf16_release_is_missing(name: str) -> None:
    error = only_error(judged(without(TINY_BF16, name)))
    assert (error.code, error.name) == (Code.MISSING, name)


@given(st.sampled_from(sorted(TINY_FP8)))
def test_a_tensor_taken_out_of_the_fp8_release_is_missing_or_leaves_half_a_pair(name: str) -> None:
    result = judged(without(TINY_FP8, name))
    error = only_error(result)
    assert (error.code, error.name) == (code_without(name), name)
    assert not result.is_complete


@given(SCHEMES, st.data())
def test_a_tensor_put_in_is_unexpected(scheme: str, data: st.DataObject) -> None:
    stores = TINY[scheme]
    stem = data.draw(st.sampled_from(sorted(stores)))
    tail = data.draw(st.sampled_from([".extra", "_again", ".bias2", ".0", "x"]))
    dtype = data.draw(st.sampled_from(["BF16", "F32", "I64", "F8_E4M3", "U8"]))
    shape = data.draw(st.sampled_from([(), (1,), (3, 5), (128,), (0,)]))
    error = only_error(judged({**stores, stem + tail: (dtype, shape)}))
    assert (error.code, error.name) == (Code.UNEXPECTED, stem + tail)


@given(SCHEMES, st.data())
def test_a_tensor_under_another_name_is_renamed(scheme: str, data: st.DataObject) -> None:
    stores = TINY[scheme]
    name = data.draw(st.sampled_from(sorted(stores)))
    other = data.draw(st.sampled_from([f"{name}.data", f"x.{name}", f"{name}_", name.replace(".", "/")]))
    if other in stores:
        other += "9"
    result = judged({**without(stores, name), other: stores[name]})
    error = only_error(result)
    assert (error.code, error.name) == (Code.RENAMED, name)
    assert error.detail == {"stored_as": other}
    assert not result.is_complete


@given(st.sampled_from(SQUARE_NOT), st.booleans())
def test_a_tensor_transposed_has_the_wrong_shape(name: str, from_fp8: bool) -> None:
    stores = TINY_FP8 if from_fp8 or name not in TINY_BF16 else TINY_BF16
    dtype, shape = stores[name]
    error = only_error(judged({**stores, name: (dtype, shape[::-1])}))
    assert (error.code, error.name) == (Code.SHAPE, name)
    assert f"shape {list(shape[::-1])}; expected {list(shape)};" in error.message


@given(SCHEMES, st.data())
def test_a_tensor_reshaped_has_the_wrong_shape(scheme: str, data: st.DataObject) -> None:
    stores = TINY[scheme]
    name = data.draw(st.sampled_from(sorted(stores)))
    dtype, shape = stores[name]
    other = data.draw(st.sampled_from([(*shape, 1), (1, *shape), shape[1:], tuple(2 * size for size in shape)]))
    if other == shape or (not shape and other == ()):
        return
    error = only_error(judged({**stores, name: (dtype, other)}))
    assert (error.code, error.name) == (Code.SHAPE, name)


@given(SCHEMES, st.data())
def test_a_tensor_in_another_type_has_the_wrong_dtype(scheme: str, data: st.DataObject) -> None:
    stores = TINY[scheme]
    name = data.draw(st.sampled_from(sorted(stores)))
    dtype, shape = stores[name]
    # A plain weight may be BF16, F16 or F32; a packed one is packed, or it is another release's.
    other = data.draw(st.sampled_from(["I64", "U16", "F64", "I8", "F8_E5M2", "BOOL"]))
    error = only_error(judged({**stores, name: (other, shape)}))
    assert (error.code, error.name) == (Code.DTYPE, name)
    assert f": {other}; expected " in error.message
    assert dtype in error.message.partition("expected ")[2]


@given(st.sampled_from(PACKED), st.sampled_from(["BF16", "F16", "F32"]))
def test_a_packed_weight_stored_plain_beside_its_scale_has_the_wrong_dtype(name: str, dtype: str) -> None:
    error = only_error(judged({**TINY_FP8, name: (dtype, TINY_FP8[name][1])}))
    assert (error.code, error.name) == (Code.DTYPE, name)
    assert f"{name}: {dtype}; expected F8_E4M3; " in error.message


@given(st.sampled_from(SCALES), st.sampled_from(["BF16", "F16", "F8_E4M3", "U8"]))
def test_a_scale_in_another_type_has_the_wrong_dtype(name: str, dtype: str) -> None:
    error = only_error(judged({**TINY_FP8, name: (dtype, TINY_FP8[name][1])}))
    assert (error.code, error.name) == (Code.DTYPE, name)


@given(st.sampled_from(SMALL), st.booleans())
def test_a_small_tensor_rounded_to_bf16_is_a_warning_that_names_the_risk(name: str, from_fp8: bool) -> None:
    stores = TINY_FP8 if from_fp8 else TINY_BF16
    result = judged({**stores, name: ("BF16", stores[name][1])})
    assert said(result) == [("warning", "dtype", name)]
    (warning,) = result.findings
    assert warning.severity is Severity.WARNING
    assert warning.message == f"{name}: BF16; expected F32; keep this tensor in F32 when converting"
    assert ("18/23 to 1/23" in warning.why) == (".hc_" in name)
    assert result.is_complete


@given(st.sampled_from(SMALL))
def test_a_small_tensor_in_f16_is_an_error(name: str) -> None:
    error = only_error(judged({**TINY_BF16, name: ("F16", TINY_BF16[name][1])}))
    assert (error.code, error.name) == (Code.DTYPE, name)
    assert f"{name}: F16; expected F32 or BF16; " in error.message


@given(st.sampled_from(PLAIN_BF16), st.sampled_from(["F16", "F32"]))
def test_a_plain_tensor_may_be_any_of_the_three_float_types(name: str, dtype: str) -> None:
    assert judged({**TINY_BF16, name: (dtype, TINY_BF16[name][1])}).findings == ()


# At full size: an expert of layer 20, a vision bias, a hyper-connection scale.

EXPERT = f"{BASE}20.mlp.experts.77.down_proj.weight"
PLACES = (EXPERT, "model.visual.blocks.5.attn.qkv.bias", f"{BASE}20.hc_ffn_scale")


@cache
def full(scheme: str) -> Stores:
    return release.fp8() if scheme == "fp8" else release.bf16()


FULL_FP8 = quantised(release.skip_list())


@pytest.mark.parametrize("scheme", ["none", "fp8"])
@pytest.mark.parametrize("name", PLACES)
def test_at_full_size_one_fault_is_one_error(scheme: str, name: str) -> None:
    stores = full(scheme)
    quantization = FULL_FP8 if scheme == "fp8" else None
    dtype, shape = stores[name]
    is_packed = dtype == "F8_E4M3"
    changes: list[tuple[Stores, Code, str]] = [
        (without(stores, name), Code.SCALE if is_packed else Code.MISSING, name),
        ({**stores, f"{name}.copy": (dtype, shape)}, Code.UNEXPECTED, f"{name}.copy"),
        ({**without(stores, name), f"{name}.moved": (dtype, shape)}, Code.RENAMED, name),
        ({**stores, name: ("I64", shape)}, Code.DTYPE, name),
    ]
    if len(shape) == 2:
        changes.append(({**stores, name: (dtype, shape[::-1])}, Code.SHAPE, name))
    if is_packed:
        changes.append((without(stores, f"{name}_scale_inv"), Code.SCALE, f"{name}_scale_inv"))
    for changed, code, subject in changes:
        result = judge(changed, quantization=quantization)
        error = only_error(result)
        assert (error.code, error.name) == (code, subject)
        assert result.is_complete == (code is Code.UNEXPECTED)


def test_one_conv_with_its_axis_moved_is_one_shape_fault_and_no_dialect() -> None:
    """Bug: one conv of one layer in MLX's order made all others the wrong ones."""
    name = f"{release.LAYERS}0.self_attn.q_conv1d.weight"
    stores = release.bf16(release.TINY)
    dtype, (channels, one, kernel) = stores[name]
    error = only_error(judge({**stores, name: (dtype, (channels, kernel, one))}, tiny_config()))
    assert (error.code.value, error.name) == ("shape", name)


def test_stacked_experts_turned_in_every_layer_are_a_spelling() -> None:
    """Some writers store a stack as [experts, in, out], where transformers has [experts, out, in]: 42 routed layers."""
    stores = {
        name: (dtype, (shape[0], shape[2], shape[1]) if name.endswith("experts.down_proj") else shape)
        for name, (dtype, shape) in transformers_names(release.bf16()).items()
    }
    result = judge(stores)
    assert result.groups[Group.TRUNK].verdict.value == "complete"
    renamed = next(finding for finding in result.findings if finding.code.value == "renamed")
    assert renamed.detail["kinds"]["turned_experts"] == 42  # type: ignore[index]
