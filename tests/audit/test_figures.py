"""The published releases at full size: from memory, from `synth`, and from another writer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from modelbones.audit import Audit
from modelbones.audit.verdicts import Verdict
from modelbones.checkpoint.directory import read_checkpoint
from modelbones.cli import main
from modelbones.families.registry import build, preset, read_config
from modelbones.tensors import Group
from tests import release
from tests.audit.stores import judge, quantised, tiny_config, write_sparse

FP8 = quantised(release.skip_list())
PARAMETERS = 321_323_031_390


def test_the_release_listed_by_hand_has_the_published_counts() -> None:
    plain, packed = release.bf16(), release.fp8()
    assert len(plain) == 38_770
    assert len(packed) == 76_108
    assert Counter(dtype for dtype, _ in packed.values()) == {"F8_E4M3": 37_338, "F32": 37_629, "BF16": 1_141}
    assert Counter(dtype for dtype, _ in plain.values()) == {"F32": 291, "BF16": 38_770 - 291}


def ensure_bf16(result: Audit) -> None:
    assert result.findings == ()
    assert result.is_complete
    assert (result.tensors, result.nbytes) == (38_770, 642_646_653_816)
    assert result.parameters == PARAMETERS
    assert result.scheme == "none"
    assert {group: (g.verdict, g.bound, g.required) for group, g in result.groups.items()} == {
        Group.TRUNK: (Verdict.COMPLETE, 37_534, 37_534),
        Group.MTP: (Verdict.COMPLETE, 889, 889),
        Group.VISION: (Verdict.COMPLETE, 347, 347),
    }
    assert result.groups[Group.MTP].nbytes == 14_865_185_408
    assert result.groups[Group.VISION].nbytes == 1_127_254_016
    for accounting in (result.structural, result.structural_raw):
        assert (accounting.required, accounting.bound) == (1_047, 1_047)
        assert accounting.is_complete()
        assert accounting.deferred == 38_770 - 1_047


def ensure_fp8(result: Audit) -> None:
    assert result.findings == ()
    assert result.is_complete
    assert (result.tensors, result.nbytes) == (76_108, 328_326_771_576)
    assert result.parameters == PARAMETERS
    assert result.scheme == "fp8"
    mtp = result.groups[Group.MTP]
    assert (mtp.verdict, mtp.bound, mtp.tensors, mtp.nbytes) == (Verdict.COMPLETE, 889, 1_760, 7_493_399_168)
    assert sum(g.schemes["fp8"] for g in result.groups.values() if "fp8" in g.schemes) == 37_338
    # The twelve sparse blocks pack four projections each: their scales are no structural name.
    scales = [
        f"model.language_model.layers.{layer}.self_attn.{module}.weight_scale_inv"
        for layer in (*release.FULL.sparse, 45)
        for module in release.FP8_ATTENTION
    ]
    assert len(scales) == 48
    assert list(result.structural_raw.unexpected) == sorted(scales)
    assert not result.structural_raw.is_complete()
    assert result.structural_raw.missing == ()
    assert result.structural.is_complete()


def test_the_bf16_release_is_complete() -> None:
    ensure_bf16(judge(release.bf16()))


def test_the_fp8_release_is_complete() -> None:
    ensure_fp8(judge(release.fp8(), quantization=FP8))


def on_disk(folder: Path) -> Audit:
    config = read_config(folder)
    quantization = config.declared.raw.get("quantization_config")
    return judge(read_checkpoint(folder), config.declared.raw, quantization=quantization)


@pytest.mark.parametrize("scheme", ["none", "fp8"])
def test_what_synth_writes_at_full_size_is_the_release(scheme: str, tmp_path: Path) -> None:
    assert main(["synth", "glm-5.3-flash", str(tmp_path / "made"), "--scheme", scheme, "--json"]) == 0
    ensure = ensure_fp8 if scheme == "fp8" else ensure_bf16
    ensure(on_disk(tmp_path / "made"))
    wanted = release.fp8() if scheme == "fp8" else release.bf16()
    stored = read_checkpoint(tmp_path / "made").tensors
    assert {name: (s.dtype.value, s.shape) for name, s in stored.items()} == wanted


@pytest.mark.parametrize("scheme", ["none", "fp8"])
def test_what_another_writer_makes_of_the_same_names_is_the_release(scheme: str, tmp_path: Path) -> None:
    config = preset("glm-5.3-flash")
    if scheme == "fp8":
        write_sparse(tmp_path, release.fp8(), {**config, "quantization_config": FP8}, per_file=1_300)
        ensure_fp8(on_disk(tmp_path))
    else:
        write_sparse(tmp_path, release.bf16(), config, per_file=400)
        ensure_bf16(on_disk(tmp_path))


def test_what_the_safetensors_package_writes_of_the_same_names_is_complete(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    save_file = pytest.importorskip("safetensors.numpy").save_file
    types = {"BF16": ml_dtypes.bfloat16, "F32": np.float32}
    arrays = {name: np.zeros(shape, types[dtype]) for name, (dtype, shape) in release.bf16(release.TINY).items()}
    save_file(arrays, tmp_path / "model.safetensors")
    result = judge(read_checkpoint(tmp_path), tiny_config())
    assert result.findings == ()
    assert result.is_complete
    assert result.tensors == len(arrays) == 272


def test_a_shrunk_config_asks_for_the_shrunk_release() -> None:
    skeleton = build(read_config(tiny_config()))
    names = {name for pattern in skeleton.patterns if pattern.required for name in pattern.names()}
    assert names == release.bf16(release.TINY).keys()
    assert judge(release.bf16(release.TINY), tiny_config()).findings == ()
