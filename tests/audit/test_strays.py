"""An MTP layer in a file outside the index: absent for loaders, and said where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones.cli import main
from tests import release
from tests.audit.stores import tiny_config, write_file

MTP = f"{release.LAYERS}{release.TINY.layers}."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Case A15's layout, with the index forgetting the side file."""
    stores = release.bf16(release.TINY)
    trunk = {name: stored for name, stored in stores.items() if not name.startswith(MTP)}
    side = {name: stored for name, stored in stores.items() if name.startswith(MTP)}
    write_file(tmp_path / "model-00001-of-00001.safetensors", trunk)
    write_file(tmp_path / "mtp.safetensors", side)
    index = {"weight_map": dict.fromkeys(trunk, "model-00001-of-00001.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text(json.dumps(tiny_config()))
    return tmp_path


def test_a_side_file_outside_the_index_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    (error,) = (finding for finding in findings if finding["severity"] == "error")
    assert (error["code"], error["name"]) == ("group_absent", "mtp")
    assert error["message"] == (
        "mtp: none of its 49 tensors is in a file the index names; mtp.safetensors holds 49 of them; "
        "expected the index to name that file; add mtp.safetensors and its tensors to the index"
    )
    assert error["detail"] == {"required": 49, "file": "mtp.safetensors", "tensors": 49}


def test_a_side_file_the_index_names_is_part_of_the_checkpoint(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    weight_map = json.loads(index.read_text())["weight_map"]
    side = [name for name in release.bf16(release.TINY) if name.startswith(MTP)]
    index.write_text(json.dumps({"weight_map": weight_map | dict.fromkeys(side, "mtp.safetensors")}))
    assert main(["check", str(folder), "--json"]) == 0
