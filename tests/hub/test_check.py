"""`owner/name` is read as a directory is: the same census, the same findings, by headers alone."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from modelbones.checkpoint import remote_headers
from modelbones.checkpoint.census import Census
from modelbones.checkpoint.directory import read_checkpoint
from modelbones.checkpoint.reference import parse_reference
from modelbones.checkpoint.remote import open_repository
from modelbones.findings import Code
from tests.checkpoint.writing import shard
from tests.cli.running import Cli
from tests.hub.server import COMMIT, FakeHub

INDEX = "model.safetensors.index.json"
TWO = "model-00002-of-00003.safetensors"


def census_of(text: str) -> Census:
    reference = parse_reference(text)
    assert reference is not None
    repository = open_repository(reference, user_agent="tests")
    try:
        return repository.census()
    finally:
        repository.close()


def here(folder: Path) -> Census:
    return replace(read_checkpoint(folder), place="org/tiny@main")


@pytest.mark.parametrize("is_direct", [False, True])
def test_a_remote_census_is_the_local_one(hub: FakeHub, folder: Path, is_direct: bool) -> None:
    hub.is_direct = is_direct
    assert census_of("org/tiny") == here(folder)
    assert not here(folder).findings


def test_a_census_without_an_index_is_the_local_one(hub: FakeHub, folder: Path) -> None:
    (folder / INDEX).unlink()
    assert census_of("org/tiny") == here(folder)


def test_a_single_file_is_enough(hub: FakeHub, folder: Path) -> None:
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    (folder / "model.safetensors").write_bytes(shard({"a": 2}))
    assert census_of("org/tiny") == here(folder)


def test_an_index_in_another_style_and_files_below_the_top_are_read(hub: FakeHub, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / TWO).rename(folder / "sub" / TWO)
    index = json.loads((folder / INDEX).read_text())
    places = {name: f"sub/{TWO}" if file == TWO else file for name, file in index["weight_map"].items()}
    (folder / INDEX).write_text(json.dumps({**index, "weight_map": places}))
    assert census_of("org/tiny") == here(folder)
    assert len(here(folder).files) == 3


@pytest.mark.parametrize("cut", [1, 100_000])
def test_a_short_file_is_the_same_finding_as_on_disk(hub: FakeHub, folder: Path, cut: int) -> None:
    os.truncate(folder / TWO, (folder / TWO).stat().st_size - cut)
    census = census_of("org/tiny")
    assert census == here(folder)
    assert [finding.code for finding in census.findings] == [Code.TRUNCATED]


@pytest.mark.parametrize(
    "raw", [b"", b"\x01", b"\xff" * 16, b"version https://git-lfs", b"\x00" * 9, b"\x02" + b"\x00" * 7]
)
def test_a_broken_file_is_the_same_finding_as_on_disk(hub: FakeHub, folder: Path, raw: bytes) -> None:
    (folder / TWO).write_bytes(raw)
    census = census_of("org/tiny")
    assert census == here(folder)
    assert len(census.findings) == 1


def test_a_file_that_ends_inside_its_header_is_the_same_finding_as_on_disk(hub: FakeHub, folder: Path) -> None:
    os.truncate(folder / TWO, 1_000)
    census = census_of("org/tiny")
    assert census == here(folder)
    assert census.findings[0].code is Code.TRUNCATED


def test_a_file_the_index_names_is_not_in_the_repository(hub: FakeHub, folder: Path) -> None:
    (folder / TWO).unlink()
    (finding,) = census_of("org/tiny").findings
    index = json.loads((folder / INDEX).read_text())["weight_map"]
    count = list(index.values()).count(TWO)
    assert finding.message == (
        f"{TWO}: not in the repository; expected the file that holds {count} tensors of {INDEX}; "
        "upload it, or write the index again"
    )
    assert not hub.paths(TWO)


def test_a_file_the_index_does_not_name_is_said_to_be_in_the_repository(hub: FakeHub, folder: Path) -> None:
    (folder / "old.safetensors").write_bytes(shard({"x": 1}))
    (finding,) = census_of("org/tiny").findings
    assert finding.message == (
        f"old.safetensors: in the repository and not in {INDEX}; expected only files the index names; "
        "remove it, or write the index again from the files"
    )


def test_a_name_that_leaves_the_repository_is_never_asked_for(hub: FakeHub, folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"]["d"] = "../../../etc/m.safetensors"
    (folder / INDEX).write_text(json.dumps(index))
    assert census_of("org/tiny") == here(folder)
    assert not hub.paths("etc")


def test_one_range_a_file_is_enough(hub: FakeHub, folder: Path) -> None:
    census_of("org/tiny")
    shards = [asked for asked in hub.asked if asked.path.partition("?")[0].endswith(".safetensors")]
    assert len(shards) == 6, "one question to the Hub and one to where it redirects, for each of three files"
    assert {asked.headers["Range"] for asked in shards} == {"bytes=0-2097151"}
    assert {asked.headers["Accept-Encoding"] for asked in shards} == {"identity"}


def test_a_longer_header_is_asked_for_again_and_the_redirect_is_not(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_headers, "first_bytes", lambda _: 4096)
    assert census_of("org/tiny") == here(folder)
    asked = [each for each in hub.asked if TWO in each.path]
    header_bytes = next(file.header_bytes for file in here(folder).files if file.name == TWO)
    assert [(each.server, each.headers["Range"]) for each in asked] == [
        ("hub", "bytes=0-4095"),
        ("cdn", "bytes=0-4095"),
        ("cdn", f"bytes=4096-{8 + header_bytes - 1}"),
    ]


@pytest.mark.parametrize(
    ("num_files", "expected"),
    [
        (1, 2 * 1024 * 1024),
        (16, 2 * 1024 * 1024),
        (120, 279_620),
        (256, 131_072),
        (1000, 131_072),
        (0, 2 * 1024 * 1024),
    ],
)
def test_the_first_range_is_long_for_few_files_and_holds_a_shards_header_for_many(
    num_files: int, expected: int
) -> None:
    assert remote_headers.first_bytes(num_files) == expected


def test_progress_is_told_file_by_file(hub: FakeHub) -> None:
    reference = parse_reference("org/tiny")
    assert reference is not None
    told: list[tuple[int, int]] = []
    repository = open_repository(reference, user_agent="tests")
    repository.census(lambda done, total: told.append((done, total)))
    repository.close()
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    "model", ["org/tiny", "hf://org/tiny", "org/tiny@v1.0", "hf://org/tiny@refs/pr/1", f"org/tiny@{COMMIT}"]
)
def test_check_says_the_commit(hub: FakeHub, run: Cli, model: str) -> None:
    ran = run("check", model, "--json")
    assert ran.code == 0, ran.err
    assert (ran.data["model"], ran.data["revision"], ran.data["verdict"]) == (model, COMMIT, "complete")
    assert f"resolved commit  {COMMIT}" in run("check", model).out


def test_show_and_state_read_the_config_alone(hub: FakeHub, run: Cli, folder: Path) -> None:
    for verb in ("show", "state"):
        ran, local = run(verb, "org/tiny", "--json"), run(verb, folder, "--json")
        assert ran.code == 0, ran.err
        assert ran.data == {**local.data, "model": "org/tiny", "revision": COMMIT}
        assert local.data["revision"] is None
        assert f"resolved commit  {COMMIT}" in run(verb, "org/tiny").out
    assert not hub.paths(".safetensors")


def test_check_judges_hf_quant_config(hub: FakeHub, run: Cli, folder: Path) -> None:
    words = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "exclude_modules": []}}
    (folder / "hf_quant_config.json").write_text(json.dumps(words))
    remote, local = run("check", "org/tiny", "--json"), run("check", folder, "--json")
    assert remote.code == local.code == 1
    assert remote.findings == local.findings
    assert {code for _, code, _ in remote.findings} == {"quant_conflict"}


def test_an_existing_path_wins(hub: FakeHub, run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tmp_path / "repo", tmp_path / "org" / "tiny")
    ran = run("check", "org/tiny", "--json")
    assert (ran.code, ran.data["revision"]) == (0, None)
    assert not hub.asked
    assert run("check", "hf://org/tiny", "--json").data["revision"] == COMMIT


def test_check_against_another_config(hub: FakeHub, run: Cli, folder: Path) -> None:
    assert run("check", "org/tiny", "--config", folder / "config.json").code == 0
    assert not hub.paths("config.json")


def test_synth_takes_the_config_of_a_repository(hub: FakeHub, run: Cli, folder: Path, tmp_path: Path) -> None:
    assert run("synth", "org/tiny", tmp_path / "out", "--json").code == 0
    assert read_checkpoint(tmp_path / "out").tensors == read_checkpoint(folder).tensors


def test_the_names_of_one_file_are_told(hub: FakeHub, folder: Path) -> None:
    (folder / "mtp.safetensors").write_bytes(shard({"x": 1, "y": 2}))
    (folder / "bad.safetensors").write_bytes(b"{")
    reference = parse_reference("org/tiny")
    assert reference is not None
    repository = open_repository(reference, user_agent="tests")
    assert repository.names_in("mtp.safetensors") == ("x", "y")
    assert repository.names_in("bad.safetensors") == repository.names_in("none.safetensors") == ()
    repository.close()
