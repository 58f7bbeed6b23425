"""One bad file is one finding: what it held is not reported missing tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from modelbones.audit import Audit
from modelbones.audit.verdicts import Verdict
from modelbones.checkpoint.directory import read_checkpoint
from modelbones.tensors import Group
from tests import release
from tests.audit.stores import judge, quantised, said, tiny_config, write_sparse

PLAIN = release.bf16(release.TINY)
PACKED = release.fp8(release.TINY)
CLAIM = quantised(name.removesuffix(".weight") for name in PLAIN if not release.is_fp8(name, release.TINY))


def audited(folder: Path, *, is_claimed: bool = True) -> Audit:
    return judge(read_checkpoint(folder), tiny_config(), quantization=CLAIM if is_claimed else None)


def truncate(path: Path) -> None:
    """Leave the header and not a byte of the data."""
    length = int.from_bytes(path.read_bytes()[:8], "little")
    with path.open("r+b") as file:
        file.truncate(8 + length)


def cut_last_byte(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def spoil_header(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[9] = 0
    path.write_bytes(bytes(raw))


def empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "truncated": ("truncated", truncate),
    "one byte short": ("truncated", cut_last_byte),
    "missing": ("index", Path.unlink),
    "empty": ("header", empty),
    "spoiled": ("header", spoil_header),
}


# Files of 7: a weight and its scale come to stand in different ones.
@pytest.mark.parametrize("number", [0, 3, 11, 25, 40, 52])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_of_an_fp8_checkpoint_is_one_finding(damage: str, number: int, tmp_path: Path) -> None:
    """Bug: a scale whose weight was in the lost file was reported as a scale of nothing."""
    code, spoil = DAMAGE[damage]
    write_sparse(tmp_path, PACKED, tiny_config(), per_file=7)
    file = f"weights-{number:03d}.safetensors"
    spoil(tmp_path / file)
    result = audited(tmp_path)
    assert said(result) == [("error", code, file)]
    assert not result.is_complete


@pytest.mark.parametrize("number", range(4))
def test_a_lost_file_does_not_change_how_the_rest_is_spelled(number: int, tmp_path: Path) -> None:
    """Bug: with the first trunk names lost, a norm of the MTP layer gave the trunk's prefix away."""
    write_sparse(tmp_path, PLAIN, tiny_config(), per_file=69)
    (tmp_path / f"weights-{number:03d}.safetensors").write_bytes(b"")
    result = audited(tmp_path, is_claimed=False)
    assert said(result) == [("error", "header", f"weights-{number:03d}.safetensors")]


def test_a_trunk_gone_but_for_one_layer_keeps_its_published_names() -> None:
    kept = {name: stored for name, stored in PLAIN.items() if not name.startswith(release.TRUNK)}
    kept |= {name: stored for name, stored in PLAIN.items() if f"{release.LAYERS}5." in name}
    kept[f"{release.LAYERS}2.input_layernorm.weight"] = PLAIN[f"{release.LAYERS}2.input_layernorm.weight"]
    result = judge(kept, tiny_config())
    assert {code for _, code, _ in said(result)} == {"missing"}
    assert result.groups[Group.TRUNK].bound == 2


def test_a_lost_scale_leaves_its_weight_unbound(tmp_path: Path) -> None:
    """Bug: a weight whose scale was past its file's end counted as there and right."""
    write_sparse(tmp_path, PACKED, tiny_config(), per_file=1)
    scales = [number for number, name in enumerate(sorted(PACKED)) if name.endswith("_scale_inv")]
    truncate(tmp_path / f"weights-{scales[5]:03d}.safetensors")
    (tmp_path / f"weights-{scales[9]:03d}.safetensors").unlink()
    result = audited(tmp_path)
    assert sorted(said(result)) == [
        ("error", "index", f"weights-{scales[9]:03d}.safetensors"),
        ("error", "truncated", f"weights-{scales[5]:03d}.safetensors"),
    ]
    bound = sum(judged.bound for judged in result.groups.values())
    assert bound == len(PLAIN) - 2
    assert not result.is_complete


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_a_lost_scale_is_no_fault_of_its_weight_even_when_nothing_is_claimed(damage: str, tmp_path: Path) -> None:
    write_sparse(tmp_path, PACKED, tiny_config(), per_file=1)
    scale = next(number for number, name in enumerate(sorted(PACKED)) if name.endswith("_scale_inv"))
    code, spoil = DAMAGE[damage]
    spoil(tmp_path / f"weights-{scale:03d}.safetensors")
    result = audited(tmp_path, is_claimed=False)
    assert [entry for entry in said(result) if entry[1] != "quant_conflict"] == [
        ("error", code, f"weights-{scale:03d}.safetensors")
    ]


def test_a_group_whose_only_file_is_lost_is_partial_and_not_absent(tmp_path: Path) -> None:
    write_sparse(tmp_path, PLAIN, tiny_config(), per_file=1)
    for path in tmp_path.glob("*.safetensors"):
        if "model.visual." in path.read_bytes().decode("latin-1"):
            path.unlink()
    result = audited(tmp_path, is_claimed=False)
    assert result.groups[Group.VISION].verdict is Verdict.PARTIAL
    assert result.groups[Group.VISION].bound == 0
    assert {entry[1] for entry in said(result)} == {"index"}
    assert not result.is_complete


def test_all_files_truncated_are_their_findings_alone(tmp_path: Path) -> None:
    write_sparse(tmp_path, PACKED, tiny_config(), per_file=100)
    for path in tmp_path.glob("*.safetensors"):
        truncate(path)
    result = audited(tmp_path)
    assert said(result) == [("error", "truncated", f"weights-{number:03d}.safetensors") for number in range(4)]
    assert result.parameters == 0
