from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from modelbones.cli import main
from tests.cli.running import Cli


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run the command line in this process."""
    return Cli(capsys)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Shrunk checkpoints by scheme; not to be changed."""
    folder = tmp_path_factory.mktemp("made")
    for scheme in ("none", "fp8"):
        arguments = ["synth", "glm-5.3-flash", str(folder / scheme), "--shrink", "--scheme", scheme, "--shards", "3"]
        assert main([*arguments, "--fill", "zeros", "--json"]) == 0
    return {scheme: folder / scheme for scheme in ("none", "fp8")}


@pytest.fixture
def bf16(made: dict[str, Path], tmp_path: Path) -> Path:
    """A shrunk BF16 checkpoint of three files, free to be changed."""
    return Path(shutil.copytree(made["none"], tmp_path / "bf16"))


@pytest.fixture
def fp8(made: dict[str, Path], tmp_path: Path) -> Path:
    """A shrunk FP8 checkpoint of three files, free to be changed."""
    return Path(shutil.copytree(made["fp8"], tmp_path / "fp8"))
