"""A synthetic checkpoint is written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from modelbones.checkpoint.directory import read_checkpoint
from modelbones.dtypes import DType
from modelbones.errors import ModelbonesError, SourceError, UsageError
from modelbones.synth import write as writing
from modelbones.synth.fill import Fill
from modelbones.synth.layout import Tensor
from modelbones.synth.write import ensure_space, write_checkpoint

LISTED = [Tensor("a.weight", DType.BF16, (3, 4)), Tensor("b", DType.F32, ()), Tensor("c", DType.F8_E4M3, (0, 7))]


def write(target: Path, **options: Any) -> int:
    options.setdefault("fill", Fill.ZEROS)
    return write_checkpoint(target, LISTED, {"model_type": "x"}, **options)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("num_shards", [None, 1, 2, 3, 50])
def test_what_is_written_reads_back(num_shards: int | None, tmp_path: Path) -> None:
    files = write(tmp_path / "made", num_shards=num_shards)
    census = read_checkpoint(tmp_path / "made")
    assert census.findings == ()
    assert files == len(census.files) == min(num_shards or 1, 3)
    assert {name: (s.dtype, s.shape) for name, s in census.tensors.items()} == {
        tensor.name: (tensor.dtype, tensor.shape) for tensor in LISTED
    }
    assert json.loads((tmp_path / "made/config.json").read_text()) == {"model_type": "x"}


def test_several_files_have_an_index_of_the_payload(tmp_path: Path) -> None:
    write(tmp_path / "made", num_shards=2)
    index = json.loads((tmp_path / "made/model.safetensors.index.json").read_text())
    assert index == {
        "metadata": {"total_size": 28},
        "weight_map": {
            "a.weight": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
            "c": "model-00002-of-00002.safetensors",
        },
    }
    write(tmp_path / "one")
    assert names(tmp_path / "one") == ["config.json", "model.safetensors"]


def test_the_safetensors_package_reads_what_is_written(tmp_path: Path) -> None:
    safe_open = pytest.importorskip("safetensors").safe_open
    pytest.importorskip("numpy")
    for fill in Fill:
        write(tmp_path / fill.value, fill=fill)
        with safe_open(tmp_path / fill.value / "model.safetensors", framework="np") as file:
            assert sorted(file.keys()) == ["a.weight", "b", "c"]
            assert file.metadata() == {"format": "pt"}
            assert file.get_slice("a.weight").get_shape() == [3, 4]
            assert file.get_tensor("b").shape == ()


def test_a_sparse_checkpoint_takes_almost_no_disk(tmp_path: Path) -> None:
    listed = [Tensor(f"t{number}", DType.BF16, (1024, 1024, 64)) for number in range(40)]
    write_checkpoint(tmp_path / "made", listed, {}, fill=Fill.SPARSE)
    paths = list((tmp_path / "made").iterdir())
    assert sum(path.stat().st_size for path in paths) > 40 * 128 * 1024**2
    if sys.platform == "linux":
        assert sum(path.stat().st_blocks * 512 for path in paths) < 1024**2


def test_what_stands_there_is_not_touched(tmp_path: Path) -> None:
    target = tmp_path / "made"
    target.mkdir()
    (target / "mine").write_text("mine")
    with pytest.raises(UsageError) as caught:
        write(target)
    assert str(caught.value) == (
        f"{target}: found something there; expected a new directory; name another or add --force"
    )
    assert names(target) == ["mine"]
    assert names(tmp_path) == ["made"]


@pytest.mark.parametrize("kind", ["directory", "file", "link", "dangling"])
def test_force_replaces_what_stands_there(kind: str, tmp_path: Path) -> None:
    target, other = tmp_path / "made", tmp_path / "other"
    other.mkdir()
    (other / "kept").write_text("kept")
    if kind == "directory":
        shutil.copytree(other, target)
    elif kind == "file":
        target.write_text("x")
    else:
        target.symlink_to(other if kind == "link" else tmp_path / "nowhere")
    write(target, is_forced=True)
    assert names(target) == ["config.json", "model.safetensors"]
    assert not target.is_symlink()
    assert names(tmp_path) == ["made", "other"]
    assert names(other) == ["kept"], "a link is replaced, and not what it leads to"


def broken_writer(error: BaseException) -> Any:
    def make(fill: Fill, seed: int) -> Any:
        def write_some(file: BinaryIO, tensor: Tensor) -> None:
            if tensor.name == "b":
                raise error
            file.write(bytes(tensor.nbytes))

        return write_some

    return make


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x"), MemoryError()])
@pytest.mark.parametrize("is_forced", [False, True])
def test_an_interruption_leaves_nothing_behind(
    error: BaseException, is_forced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "made"
    if is_forced:
        write(target)
    before = {path: path.read_bytes() for path in target.glob("*")}
    monkeypatch.setattr(writing, "writer", broken_writer(error))
    with pytest.raises(type(error)):
        write(target, is_forced=is_forced)
    assert names(tmp_path) == (["made"] if is_forced else [])
    assert {path: path.read_bytes() for path in target.glob("*")} == before


@pytest.mark.parametrize("number", [28, 27, 5])
def test_a_disk_that_fails_while_it_is_written_is_our_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: a full disk was a traceback."""
    monkeypatch.setattr(writing, "writer", broken_writer(OSError(number, "system words")))
    with pytest.raises(SourceError) as caught:
        write(tmp_path / "made")
    assert str(tmp_path) in str(caught.value)
    assert "system words" not in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "full")])
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_an_interruption_while_the_old_makes_way_keeps_one_of_the_two(
    error: BaseException, moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: interrupted between the two renames, the old directory was deleted with the new one."""
    target = tmp_path / "made"
    target.mkdir()
    (target / "old").write_text("old")
    rename, calls = Path.rename, 0

    def broken(self: Path, to: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == moment == 1 or (calls == moment == 2):
            raise error
        moved = rename(self, to)
        if calls == 2 and moment == 3:
            raise error
        return moved

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises((KeyboardInterrupt, ModelbonesError)):
        write(target, is_forced=True)
    assert names(tmp_path) == ["made"]
    assert names(target) == (["config.json", "model.safetensors"] if moment == 3 else ["old"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """A fill that would run for minutes is stopped in the middle of a file."""
    arguments = ["synth", "glm-5.3-flash", str(tmp_path / "made"), "--fill", "random", "--scheme", "fp8"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = (
        "import shutil, collections, signal, sys\n"
        "shutil.disk_usage = lambda _: collections.namedtuple('U', 'free')(2**60)\n"
        "from modelbones.cli import main\n"
        # A test run in the background has SIGINT ignored, and its children with it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.exit(main())"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not any(path.stat().st_size for path in tmp_path.glob(".made.*/*")):
        time.sleep(0.02)
    assert child.poll() is None, child.communicate()
    child.send_signal(number)
    out, err = child.communicate(timeout=120)
    assert names(tmp_path) == []
    assert (out, err) == ("", "")
    assert child.returncode == 128 + number


Usage = namedtuple("Usage", "free")


def test_a_real_fill_wants_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=27))
    for fill in (Fill.ZEROS, Fill.RANDOM):
        with pytest.raises(UsageError) as caught:
            write(tmp_path / "made", fill=fill)
        assert str(caught.value) == (
            f"{tmp_path}: 27 B (27 bytes) free; expected 28 B (28 bytes); use --fill sparse or --shrink"
        )
    assert names(tmp_path) == []
    ensure_space(tmp_path, 27, Fill.ZEROS)
    write(tmp_path / "made", fill=Fill.SPARSE)


def test_a_directory_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write(tmp_path / "no/made")
    assert str(caught.value) == f"{tmp_path / 'no'}: not a directory; expected one to write into; make it first"


@pytest.mark.parametrize("target", ["x" * 300, "a\0b"])
def test_a_name_no_disk_takes_is_our_error(target: str, tmp_path: Path) -> None:
    """Bug: such names were tracebacks."""
    with pytest.raises(ModelbonesError):
        write(tmp_path / target)
    assert names(tmp_path) == []


def test_the_current_directory_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: `--force` on "." was a traceback."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine").write_text("mine")
    monkeypatch.chdir(here)
    with pytest.raises(ModelbonesError):
        write(Path(), is_forced=True)
    assert names(here) == ["mine"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_no_one_can_write_to_is_our_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(SourceError):
            write(tmp_path / "made")
    finally:
        tmp_path.chmod(0o700)


def test_a_size_no_file_can_have_is_our_error(tmp_path: Path) -> None:
    """Bug: offsets past 64 bits were a traceback."""
    listed = [Tensor("x", DType.F32, (2**31, 2**31)), Tensor("y", DType.F32, (2**31, 2**31))]
    with pytest.raises(ModelbonesError):
        write_checkpoint(tmp_path / "made", listed, {}, fill=Fill.SPARSE, num_shards=1)
    assert names(tmp_path) == []
