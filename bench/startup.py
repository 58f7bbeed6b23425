"""Start-up: what `import modelbones`, `show`, `state` and `plan` cost over a Python that does nothing.

    python bench/startup.py [--rounds N]

Every command is a whole process of the interpreter this runs under, which must have
modelbones installed. The commands take turns, so that a slow moment of the machine
falls on all of them, and the ratios are those of one run. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HEAVY = ("numpy", "ml_dtypes", "torch", "rich", "huggingface_hub", "orjson")
PEAK_UNITS_PER_MIB = 1024 * 1024 if sys.platform == "darwin" else 1024
"""`ru_maxrss` counts KiB on Linux and bytes on macOS."""


class Run(NamedTuple):
    """One whole process."""

    seconds: float
    peak: int


def commands(config: Path) -> dict[str, list[str]]:
    """What is measured, by the name it is printed under; the first is the yardstick."""
    python = [sys.executable]
    verb = [*python, "-m", "modelbones"]
    return {
        "python -c pass": [*python, "-c", "pass"],
        "import modelbones": [*python, "-c", "import modelbones"],
        "show glm-5.3-flash": [*verb, "show", "glm-5.3-flash"],
        "show config.json": [*verb, "show", str(config)],
        "show config.json --json": [*verb, "show", str(config), "--json"],
        "state config.json": [*verb, "state", str(config), "--context", "131072"],
        "state config.json --json": [*verb, "state", str(config), "--context", "131072", "--json"],
        "plan config.json": [*verb, "plan", str(config), "--gpu", "8xH200", "--overhead", "10GiB"],
        "plan config.json --json": [*verb, "plan", str(config), "--kv-memory", "45.07GiB", "--json"],
    }


def measure(command: list[str]) -> Run:
    """Run `command` once; its output is thrown away, a failure is ours to hear of."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}; expected 0; run it by itself")
    return Run(seconds, usage.ru_maxrss)


def median(values: list[float]) -> float:
    """The middle value. (The statistics module would make this process, and so the floor, larger.)"""
    middle = sorted(values)
    half = len(middle) // 2
    return middle[half] if len(middle) % 2 else (middle[half - 1] + middle[half]) / 2


def loaded(command: list[str]) -> tuple[int, list[str]]:
    """How many modules `command` imports, and which of the heavy ones."""
    timed = [command[0], "-X", "importtime", *command[1:]]
    trace = subprocess.run(timed, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr
    names = [line.rpartition("|")[2].strip() for line in trace.splitlines() if line.startswith("import time:")][1:]
    return len(names), [name for name in HEAVY if name in names]


def write_config(path: Path) -> None:
    """The built-in preset as the file a user would have; read in a process of its own."""
    code = "import json; from modelbones.families.registry import preset; print(json.dumps(preset('glm-5.3-flash')))"
    shown = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
    path.write_text(json.dumps(json.loads(shown), indent=2))


def row(name: str, runs: list[Run], bare: float, command: list[str]) -> str:
    """One line of the table."""
    took = median([run.seconds for run in runs])
    modules, heavy = loaded(command)
    peak = max(run.peak for run in runs)
    # Linux counts what this process held when it forked: a smaller child cannot be told from it.
    floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = f"{peak / PEAK_UNITS_PER_MIB:.1f}" if peak > floor else f"< {floor / PEAK_UNITS_PER_MIB:.0f}"
    return (
        f"| {name:<24} | {took * 1e3:6.1f} | {(took - bare) * 1e3:9.1f} | {took / bare:6.2f} "
        f"| {memory:>8} | {modules:7d} | {', '.join(heavy) or '-':<6} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure start-up against bare Python.")
    parser.add_argument("--rounds", type=int, default=21, help="times each command runs (default: 21)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        write_config(config)
        measured = commands(config)
        for command in measured.values():  # once unmeasured: byte code and page cache
            measure(command)
        runs: dict[str, list[Run]] = {name: [] for name in measured}
        for _ in range(rounds):
            for name, command in measured.items():
                runs[name].append(measure(command))
        bare = median([run.seconds for run in next(iter(runs.values()))])
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {rounds} rounds\n")
        print("| whole process            |     ms | over bare | x bare | peak MiB | modules | heavy  |")
        print("| ------------------------ | -----: | --------: | -----: | -------: | ------: | ------ |")
        for name, command in measured.items():
            print(row(name, runs[name], bare, command), flush=True)


if __name__ == "__main__":
    main()
