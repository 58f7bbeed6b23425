from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelbones.checkpoint import fetch
from modelbones.checkpoint import hub as client
from modelbones.cli import main
from tests.cli.running import Cli
from tests.hub.server import FakeHub, Repo

constants = pytest.importorskip("huggingface_hub.constants")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shrunk checkpoint of three files; not to be changed."""
    folder = tmp_path_factory.mktemp("hub") / "made"
    words = ["synth", "glm-5.3-flash", str(folder), "--shrink", "--shards", "3", "--fill", "zeros", "--json"]
    assert main(words) == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """What the repository holds, free to be changed."""
    return Path(shutil.copytree(made, tmp_path / "repo"))


@pytest.fixture(params=["plain", "library"])
def hub(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[FakeHub]:
    """A Hub with the repository org/tiny; the only one this process knows, with an empty cache and no token.

    Every test that takes it runs over plain connections and over the library's client.
    """
    fake = FakeHub({"org/tiny": Repo(folder)})
    monkeypatch.setattr(constants, "ENDPOINT", fake.endpoint)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 5)
    monkeypatch.setattr(fetch, "PAUSE_S", 0.01)
    monkeypatch.setattr(client, "is_plain", lambda _: request.param == "plain")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield fake
    fake.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run the command line in this process."""
    return Cli(capsys)
