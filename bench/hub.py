"""The Hub: `check owner/name` of 120 shards when every request takes 50 ms.

    python bench/hub.py [--rounds N] [--delay SECONDS]

Run from the repository's root, where `tests/` is. It writes the NVFP4 release in holes, serves
it on 127.0.0.1 as the Hub does, each large file behind a redirect to a second server, and times
whole processes of the interpreter this runs under: `check` of the directory, `check` through the
Hub, the same without redirects, and huggingface_hub's own reader of headers, which judges nothing.
They take turns; nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "org/nvfp4"
TARGET_S = 1.0
PEER = f"from huggingface_hub import get_safetensors_metadata; get_safetensors_metadata({MODEL!r})"


@contextmanager
def served(folder: Path, delay_s: float, *extra: str) -> Iterator[str]:
    """The address of a Hub that serves `folder`, in a process of its own."""
    command = [sys.executable, "-m", "tests.hub.server", f"{MODEL}={folder}", "--delay", str(delay_s), *extra]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def measure(command: list[str], environment: dict[str, str]) -> float:
    """Seconds of one whole process; a failure is ours to hear of."""
    began = time.perf_counter()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}; expected 0; run it by itself")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a check through the Hub.")
    parser.add_argument("--rounds", type=int, default=11, help="times each command runs (default: 11)")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds every request takes (default: 0.05)")
    args = parser.parse_args()
    modelbones = [sys.executable, "-m", "modelbones"]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "nvfp4"
        words = ["synth", "glm-5.3-flash", str(folder), "--scheme", "nvfp4", "--shards", "120", "--json"]
        subprocess.run([*modelbones, *words], stdout=subprocess.DEVNULL, check=True)
        with served(folder, args.delay) as hub, served(folder, args.delay, "--direct") as direct:
            plain = {**os.environ, "HF_HOME": str(Path(work) / "home")}
            commands = {
                "check DIRECTORY": ([*modelbones, "check", str(folder)], plain),
                "check owner/name, redirected": ([*modelbones, "check", MODEL], {**plain, "HF_ENDPOINT": hub}),
                "check owner/name, direct": ([*modelbones, "check", MODEL], {**plain, "HF_ENDPOINT": direct}),
                "huggingface_hub, redirected": ([sys.executable, "-c", PEER], {**plain, "HF_ENDPOINT": hub}),
            }
            runs: dict[str, list[float]] = {name: [] for name in commands}
            for number in range(args.rounds + 1):
                for name, command in commands.items():
                    seconds = measure(*command)
                    if number:  # the first is for byte code and page cache
                        runs[name].append(seconds)
    report(runs, args.rounds, args.delay)


def report(runs: dict[str, list[float]], rounds: int, delay_s: float) -> None:
    local = statistics.median(runs["check DIRECTORY"])
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {delay_s * 1e3:g} ms a request, {rounds} rounds"
    )
    print(f"target: at most {TARGET_S * 1e3:,.0f} ms for a check through the Hub\n")
    print("| whole process                | median ms | fastest ms | x local |")
    print("| ---------------------------- | --------: | ---------: | ------: |")
    for name, seconds in runs.items():
        median = statistics.median(seconds)
        print(f"| {name:<28} | {median * 1e3:9.0f} | {min(seconds) * 1e3:10.0f} | {median / local:7.2f} |")


if __name__ == "__main__":
    main()
