"""What MODEL may be; the cache, offline mode and the environment's own words."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modelbones.checkpoint import hub as client
from modelbones.checkpoint.reference import parse_reference
from modelbones.cli import progress
from modelbones.errors import UsageError
from tests.cli.running import Cli
from tests.hub.conftest import constants
from tests.hub.server import COMMIT, FakeHub

PLACE = "org/tiny@main"
NOT_CACHED = "not in the cache, and HF_HUB_OFFLINE is set; unset it, or download the repository first"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", "org/name@main"),
        ("hf://org/name", "org/name@main"),
        ("org/name@v1.0", "org/name@v1.0"),
        ("hf://org/name@refs/pr/12", "org/name@refs/pr/12"),
        ("Qwen/Qwen3.5-35B_A3B@feature/x", "Qwen/Qwen3.5-35B_A3B@feature/x"),
        ("hf://org/name.gguf", "org/name.gguf@main"),
        ("org/name.gguf@main", "org/name.gguf@main"),
    ],
)
def test_a_reference_is_a_repository_and_a_revision(text: str, expected: str) -> None:
    assert str(parse_reference(text)) == expected


@pytest.mark.parametrize(
    "text",
    ["name", "a/b/c", "./a/b", "/a/b", "../b", "a/../b", "a/b@", "a/b@x y", "a/b@..", "a//b", "a/", "/b", "-a/b",
     "a/b.", "a/b--c", "a/config.json", "a/m.safetensors", "a/m.safetensors.index.json", "a/m.gguf", "", "ä/b", "a/b\n",
     "C:/b", f"{'a' * 97}/b"],
)  # fmt: skip
def test_other_words_are_no_reference(text: str) -> None:
    assert parse_reference(text) is None


@pytest.mark.parametrize("text", ["hf://", "hf://name", "hf://datasets/a/b", "hf://a/b@", "hf://a/b/config.json"])
def test_hf_without_a_repository_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert str(caught.value) == f'"{text}": no repository of the Hub; expected hf://owner/name or hf://owner/name@rev'


def test_without_the_extra_a_reference_says_what_to_install(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "huggingface_hub":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    for verb in ("show", "state", "check"):
        ran = run(verb, "org/tiny")
        assert (ran.code, ran.out, ran.err) == (
            3,
            "",
            f"modelbones: {PLACE}: huggingface_hub is not installed; expected the extra `hub`; "
            "pip install 'modelbones[hub]'\n",
        )


def test_a_file_that_is_not_there_is_not_looked_for_on_the_hub(hub: FakeHub, run: Cli) -> None:
    assert run("check", "dir/model.safetensors").err == (
        "modelbones: dir/model.safetensors: not on disk; download it, or name a file that exists\n"
    )
    assert not hub.asked


# --- the cache -----------------------------------------------------------------------------------


def cache(folder: Path, *names: str, commit: str = COMMIT) -> Path:
    """A snapshot of the repository as huggingface_hub keeps it, with these files."""
    repo = Path(constants.HF_HUB_CACHE) / "models--org--tiny"
    snapshot, refs = repo / "snapshots" / commit, repo / "refs"
    for made in (snapshot, refs):
        made.mkdir(parents=True, exist_ok=True)
    (refs / "main").write_text(commit)
    for name in names:
        shutil.copy(folder / name, snapshot / name)
    return snapshot


def everything(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_what_is_cached_is_not_asked_for(hub: FakeHub, run: Cli, folder: Path) -> None:
    first, config = "model-00001-of-00003.safetensors", "config.json"
    cache(folder, first, config)
    ran = run("check", "org/tiny", "--json")
    assert (ran.code, ran.data["files"]) == (0, 3)
    assert not hub.paths(first)
    assert not hub.paths(config)
    assert hub.paths("model-00002-of-00003.safetensors")


def test_a_snapshot_of_another_commit_is_not_used(hub: FakeHub, run: Cli, folder: Path) -> None:
    cache(folder, *everything(folder), commit="f" * 40)
    assert run("check", "org/tiny").code == 0
    assert len(hub.paths(".safetensors?")) == 3


@pytest.mark.parametrize("model", ["org/tiny", "hf://org/tiny@main", f"org/tiny@{COMMIT}"])
def test_offline_reads_the_snapshot(
    hub: FakeHub, run: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    snapshot = cache(folder, *everything(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    ran = run("check", model, "--json")
    assert (ran.code, ran.data["revision"], ran.data["place"]) == (0, COMMIT, str(snapshot))
    assert run("show", model, "--json").data["revision"] == COMMIT
    assert not hub.asked


@pytest.mark.parametrize("model", ["org/tiny", "org/tiny@v1.0", "org/none"])
def test_offline_and_not_cached(
    hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch, model: str, folder: Path
) -> None:
    if model != "org/tiny":
        cache(folder, "config.json")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    ran = run("show", model)
    place = model if "@" in model else f"{model}@main"
    assert (ran.code, ran.err) == (
        3,
        f"modelbones: {place}: {NOT_CACHED}\n",
    )
    assert not hub.asked


# --- the environment, in processes of their own ----------------------------------------------------


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    command = [sys.executable, "-m", "modelbones", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**clean, **environment})


def test_the_environment_is_honoured(hub: FakeHub, folder: Path, tmp_path: Path) -> None:
    hub.repos["org/tiny"].access = "private"
    words = {"HF_ENDPOINT": f"{hub.endpoint}/", "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_good"}
    ran = process("check", "org/tiny", **words)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"resolved commit  {COMMIT}" in ran.stdout
    ran = process("check", "org/tiny", **{**words, "HF_HUB_OFFLINE": "1"})
    assert (ran.returncode, ran.stderr) == (
        3,
        f"modelbones: {PLACE}: {NOT_CACHED}\n",
    )


def test_the_token_of_whoever_is_logged_in_is_sent(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["org/tiny"].access = "private"
    (tmp_path / "token").write_text("hf_good\n")
    words = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path)}
    assert process("show", "org/tiny", **words).returncode == 0
    ran = process("show", "org/tiny", **words, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
    assert ran.returncode == 3


@pytest.mark.parametrize("endpoint", ["127.0.0.1:1", "ftp://127.0.0.1", "http://", "http://[", "http://a:b"])
def test_an_endpoint_that_is_no_address(endpoint: str, tmp_path: Path) -> None:
    ran = process("show", "org/tiny", HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path))
    assert (ran.returncode, ran.stderr) == (
        3,
        "modelbones: HF_ENDPOINT: no address of a server; expected http:// or https:// and a host; "
        "correct it, or unset it\n",
    )


def test_a_setting_the_library_cannot_read(tmp_path: Path) -> None:
    ran = process("show", "org/tiny", HF_HUB_DOWNLOAD_TIMEOUT="soon", HF_HOME=str(tmp_path))
    assert (ran.returncode, ran.stderr) == (
        3,
        f"modelbones: {PLACE}: an HF_ variable of the environment holds a value of the wrong kind; "
        "correct it, or unset it\n",
    )


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("NOTHING", "", True),
        ("https_proxy", "http://proxy:3128", False),
        ("HTTP_PROXY", "http://proxy:3128", False),
        ("ALL_PROXY", "socks5://proxy", False),
        ("all_proxy", "", True),
    ],
)
def test_a_proxy_is_the_librarys_business(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.delitem(sys.modules, "huggingface_hub.utils._http", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert client.is_plain("https://hub.example") is expected
    assert not client.is_plain("https://name:word@hub.example")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not client.is_plain("https://hub.example")


def test_a_program_that_has_loaded_the_librarys_client_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub.utils._http", sys)
    assert not client.is_plain("https://hub.example")


def test_a_proxy_that_cannot_be_used(tmp_path: Path) -> None:
    ran = process("show", "org/tiny", HTTPS_PROXY="nonsense://x", HF_HOME=str(tmp_path))
    assert (ran.returncode, ran.stderr) == (
        3,
        "modelbones: the environment: http_proxy, https_proxy or all_proxy names a proxy that cannot be used; "
        "correct it, or unset it\n",
    )


def test_a_model_on_disk_imports_nothing_of_the_hubs(folder: Path) -> None:
    code = (
        "import sys; from modelbones.cli import main; "
        f"main(['check', {str(folder)!r}]); main(['show', {str(folder)!r}]); "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "print(loaded & {'huggingface_hub', 'httpx', 'httpx2'}, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "set()\n"


def test_a_bar_is_drawn_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with progress.bar("headers") as tell:
        assert tell is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.bar("headers") as tell:
        assert tell is not None
        tell(2, 3)
    shown = capsys.readouterr()
    assert "headers" in shown.err
    assert shown.out == ""
