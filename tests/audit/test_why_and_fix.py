"""Every finding of every code says why it matters and what to do."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelbones.audit.undeclared import judged_as_declared
from modelbones.checkpoint.directory import read_checkpoint
from modelbones.findings import Code, Finding
from tests import release
from tests.audit.builds import BUILDS
from tests.audit.stores import judge, tiny_config, write_file, write_sparse
from tests.dialects.test_recognise import in_mlx, in_transformers, prefixed
from tests.published import GONE, edited
from tests.release import LAYERS, Stores

PLAIN = release.bf16(release.TINY)
NORM = f"{LAYERS}1.input_layernorm.weight"
UP = f"{LAYERS}3.mlp.experts.0.up_proj.weight"


def without(stores: Stores, prefix: str) -> Stores:
    return {name: stored for name, stored in stores.items() if not name.startswith(prefix)}


def of_tensors() -> Iterator[tuple[Finding, ...]]:
    for stores in (
        without(PLAIN, NORM),
        without(PLAIN, f"{LAYERS}3.mlp.experts."),
        without(PLAIN, f"{LAYERS}5."),
        without(PLAIN, "model.visual."),
        {**PLAIN, "x": ("U8", (1,))},
        {**PLAIN, **{f"x.{number}": ("U8", (1,)) for number in range(20)}},
        {**PLAIN, NORM: ("BF16", (7,))},
        {**PLAIN, NORM: ("I8", (128,))},
        {**PLAIN, f"{LAYERS}1.hc_attn_scale": ("BF16", (3,))},
        {**without(PLAIN, NORM), "moved": PLAIN[NORM]},
        {**PLAIN, f"{UP}_scale": ("F32", ())},
        without(BUILDS["nvfp4"].stores, UP),
        without(BUILDS["nvfp4"].stores, f"{UP}_scale_2"),
        {**BUILDS["nvfp4"].stores, f"{UP}_scale_2": ("F32", (9,))},
        in_mlx(),
        in_transformers(),
        prefixed("foo."),
        prefixed("model."),
    ):
        yield judge(stores, tiny_config()).findings
    for name, build in BUILDS.items():
        others = (each for other, each in BUILDS.items() if other != name and not each.is_silent)
        yield judge(build.stores, tiny_config(), quantization=next(others).claim).findings
        yield judge(PLAIN, tiny_config(), quantization=build.claim).findings
    yield judge(PLAIN, edited(tiny_config(), {"vision_config": GONE})).findings
    pruned = {name: stored for name, stored in PLAIN.items() if ".3.mlp.experts.7." not in name}
    pruned |= {
        f"{LAYERS}3.mlp.gate.weight": ("BF16", (7, 128)),
        f"{LAYERS}3.mlp.gate.e_score_correction_bias": ("F32", (7,)),
    }
    yield judge(pruned, tiny_config()).findings
    yield (judged_as_declared("config.json"),)


def of_files(folder: Path) -> Iterator[tuple[Finding, ...]]:
    def damaged(name: str, damage: bytes | None) -> tuple[Finding, ...]:
        target = folder / name
        write_sparse(target, PLAIN, tiny_config(), per_file=69)
        file = target / "weights-001.safetensors"
        if damage is None:
            file.unlink()
        else:
            file.write_bytes(damage)
        return judge(read_checkpoint(target), tiny_config()).findings

    yield damaged("absent", None)
    yield damaged("empty", b"")
    yield damaged("garbage", struct.pack("<Q", 4) + b"abcd")
    target = folder / "cut"
    write_sparse(target, PLAIN, tiny_config(), per_file=69)
    with (target / "weights-002.safetensors").open("r+b") as file:
        file.truncate(file.seek(0, 2) - 1)
    write_file(target / "stray.safetensors", {"stray": ("U8", (1,))})
    (target / "model.other.safetensors.index.json").write_text("{}")
    yield judge(read_checkpoint(target), tiny_config()).findings
    gap = folder / "gap"
    gap.mkdir()
    write_file(gap / "model-00001-of-00002.safetensors", PLAIN)
    yield judge(read_checkpoint(gap), tiny_config()).findings


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    listed = [*of_tensors(), *of_files(tmp_path_factory.mktemp("files"))]
    return [finding for some in listed for finding in some]


def test_every_code_is_among_them(findings: list[Finding]) -> None:
    assert {finding.code for finding in findings} == set(Code)


def test_each_says_why_it_matters_and_what_to_do(findings: list[Finding]) -> None:
    for finding in findings:
        assert finding.why.strip(), finding
        assert finding.fix.strip(), finding
        assert not finding.why.endswith("."), finding
        assert finding.message.startswith(finding.name) or finding.code is Code.INDEX, finding
        assert finding.message != finding.why


def test_the_hints_that_people_ask_for(findings: list[Finding]) -> None:
    fixes = {finding.code: finding.fix for finding in findings if finding.name != "vision"}
    absent = next(f for f in findings if f.code is Code.GROUP_ABSENT and f.name == "mtp")
    assert "set num_nextn_predict_layers to 0, or graft the layer" in absent.fix
    assert "again" in fixes[Code.TRUNCATED]
    by_transformers = next(
        f for f in findings if f.code is Code.RENAMED and f.detail.get("dialect") == ["transformers"]
    )
    assert "drop them silently" in by_transformers.why
    assert "transformers" in by_transformers.message
