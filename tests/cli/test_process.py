"""The command as a process: pipes, signals, terminals, colours, odd locales."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "modelbones"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def start(*words: object, **options: object) -> subprocess.Popen[bytes]:
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.update(options)  # type: ignore[arg-type]
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


@pytest.mark.parametrize("words", [("show", "glm-5.3-flash", "--json"), ("show", "glm-5.3-flash", "--tensors")])
def test_a_closed_pipe_ends_quietly(words: tuple[str, ...]) -> None:
    child = start(*words)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    err = child.stderr.read()
    assert (child.wait(30), err) == (141, b"")


def test_the_first_line_can_be_taken() -> None:
    line = f"{sys.executable} -m modelbones show glm-5.3-flash --json | head -n 1"
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, env=environment, check=True)
    assert (ran.stdout, ran.stderr) == (b"{\n", b"")


def test_no_standard_output_at_all_ends_quietly() -> None:
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    line = f"{sys.executable} -m modelbones families >&-"
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, env=environment, check=False)
    assert b"Traceback" not in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    """Bug: it was a traceback."""
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    line = f"{sys.executable} -m modelbones show glm-5.3-flash --json > /dev/full"
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, env=environment, check=False)
    assert ran.returncode == 3
    assert ran.stderr == b"modelbones: standard output: no space left to write to; free some, or write elsewhere\n"


def test_an_interrupted_check_exits_130_quietly(tmp_path: Path) -> None:
    """A pipe that no one writes to keeps the reading of a config waiting."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import modelbones.cli.show as show\n"
        "def wait(args):\n"
        "    open(sys.argv[1], 'w').close()\n"
        "    time.sleep(30)\n"
        "show.run = wait\n"
        "from modelbones.cli import main\n"
        "sys.exit(main(['show', 'glm-5.3-flash']))"
    )
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = tmp_path / "started"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(started)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    deadline = time.monotonic() + 30
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=120) == (b"", b"")
    assert child.returncode == 130


def on_terminal(*words: object, columns: int = 80, **options: str) -> bytes:
    """What a terminal of this width is sent."""
    pty = pytest.importorskip("pty")
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    leader, follower = pty.openpty()
    fcntl.ioctl(
        follower, termios.TIOCSWINSZ, (50).to_bytes(2, sys.byteorder) + columns.to_bytes(2, sys.byteorder) + bytes(4)
    )
    environment = {**ENVIRONMENT, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.update(options)
    child = subprocess.Popen(
        [*COMMAND, *map(str, words)], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert child.wait(30) == 0
    return shown


def test_a_terminal_gets_colour_and_long_tables_end_with_how_many_more() -> None:
    shown = on_terminal("show", "glm-5.3-flash", "--tensors")
    assert COLOUR.search(shown)
    plain = COLOUR.sub(b"", shown).decode()
    (more,) = re.findall(r"and ([\d,]+) more", plain)
    printed = subprocess.run([*COMMAND, "show", "glm-5.3-flash", "--json"], capture_output=True, check=True).stdout
    assert int(more) == len(json.loads(printed)["patterns"]) - 60
    assert max(map(len, plain.splitlines())) <= 80


@pytest.mark.parametrize("words", [("show",), ("state",), ("show", "--layer", "3")])
def test_reports_fit_a_terminal_of_80_columns(words: tuple[str, ...]) -> None:
    verb, *flags = words
    plain = COLOUR.sub(b"", on_terminal(verb, "glm-5.3-flash", *flags)).decode()
    assert max(map(len, plain.splitlines())) <= 80


def test_no_color_is_honoured() -> None:
    shown = on_terminal("show", "glm-5.3-flash", NO_COLOR="1")
    assert b"\x1b[3" not in shown
    assert b"38;5" not in shown


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_names_of_any_letters_are_printed_in_any_locale(encoding: str, tmp_path: Path) -> None:
    """Bug: a path or a name the locale has no letters for was a traceback."""
    from modelbones.cli import main

    folder = tmp_path / "modèle-\N{SNOWMAN}"
    assert main(["synth", "glm-5.3-flash", str(folder), "--shrink", "--json"]) == 0
    for style in ("text", "md", "github"):
        child = start("check", folder, "--format", style, PYTHONIOENCODING=encoding)
        out, err = child.communicate()
        assert (child.returncode, err) == (0, b""), style
        assert out if style != "github" else out == b""


def test_a_path_that_is_no_text_is_printed(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux keeps any bytes as a name")
    from modelbones.cli import main

    assert main(["synth", "glm-5.3-flash", str(tmp_path / "made"), "--shrink", "--json"]) == 0
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff"))
    (tmp_path / "made").rename(odd)
    for flags in ((), ("--json",), ("--format", "md")):
        child = start("check", odd, *flags)
        out, err = child.communicate()
        assert (child.returncode, err) == (0, b"")
        assert out
    child = start("check", Path(f"{odd}x"))
    out, err = child.communicate()
    assert (child.returncode, out) == (3, b"")
    assert b"Traceback" not in err


def test_a_name_that_would_steer_the_terminal_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    """Bug: control characters in a tensor's name reached the terminal."""
    from modelbones.cli import main

    assert main(["synth", "glm-5.3-flash", str(tmp_path / "made"), "--shrink", "--json"]) == 0
    path = tmp_path / "made/model.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    name = rb"\u001b[2J\u0007evil\r\nname\u202e"
    header = raw[8 : 8 + length].rstrip().replace(b"model.language_model.norm.weight", name)
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw[8 + length :])
    for style in ("text", "md", "github"):
        child = start("check", tmp_path / "made", "--format", style)
        out, err = child.communicate()
        assert (child.returncode, err) == (1, b"")
        shown = out.decode()
        assert "evil" in shown
        assert all(character.isprintable() or character == "\n" for character in shown), style
        if style == "github":
            assert len(shown.splitlines()) == 1
