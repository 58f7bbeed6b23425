"""`check` at full size, against reading and parsing the same headers alone, and its growth.

    python bench/check.py [--rounds N] [--most NAMES]

The releases are written by `synth` in holes, to a temporary directory: some 40 MB of disk.
The yardstick is a whole process too: for each file it reads the length, the header, and
parses it with orjson, and then the index; it judges nothing. The commands take turns, and
the ratios are those of one run. Nothing is asserted.
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

PEAK_UNITS_PER_MIB = 1024 * 1024 if sys.platform == "darwin" else 1024
"""`ru_maxrss` counts KiB on Linux and bytes on macOS."""
HEADERS = """
import sys, pathlib, orjson
held = []
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")):
    with open(path, "rb", buffering=0) as file:
        length = int.from_bytes(file.read(8), "little")
        held.append(orjson.loads(file.read(length)))
"""
INDEX_TOO = (
    HEADERS
    + """
index = pathlib.Path(sys.argv[1], "model.safetensors.index.json")
held.append(orjson.loads(index.read_bytes()) if index.exists() else None)
"""
)
EXPERTS_A_LAYER = 288 * 3
"""Names the routed experts of one layer of GLM-5.3-Flash take."""


class Run(NamedTuple):
    """One whole process."""

    seconds: float
    peak: int


def measure(command: list[str]) -> Run:
    """Run `command` once; its output is thrown away, a failure is ours to hear of."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ...: exit code {child.returncode}; expected 0; run it by itself")
    return Run(seconds, usage.ru_maxrss)


def median(values: list[float]) -> float:
    """The middle value."""
    middle = sorted(values)
    half = len(middle) // 2
    return middle[half] if len(middle) % 2 else (middle[half - 1] + middle[half]) / 2


def modelbones(*words: str) -> list[str]:
    """A command of ours."""
    return [sys.executable, "-m", "modelbones", *words]


def written(folder: Path, name: str, *flags: str, model: str = "glm-5.3-flash") -> Path:
    """A checkpoint in holes."""
    target = folder / name
    subprocess.run(modelbones("synth", model, str(target), *flags), check=True, stdout=subprocess.DEVNULL)
    return target


def deeper(folder: Path, layers: int) -> Path:
    """The published config with `layers` layers, every fourth one sparse attention."""
    code = "import json; from modelbones.families.registry import preset; print(json.dumps(preset('glm-5.3-flash')))"
    config = json.loads(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout)
    text = config["text_config"]
    sparse = [index for index in range(layers) if index % 4 == 3]
    text["num_hidden_layers"] = layers
    text["layer_types"] = [
        "deepseek_sparse_attention" if index % 4 == 3 else "linear_attention" for index in range(layers)
    ]
    text["indexer_types"] = ["full"] * layers
    text["mlp_layer_types"] = ["dense"] * 3 + ["sparse"] * (layers - 3)
    text["linear_attn_config"]["full_attn_layers"] = sparse
    text["linear_attn_config"]["kda_layers"] = [index for index in range(layers) if index % 4 != 3]
    path = folder / f"config-{layers}.json"
    path.write_text(json.dumps(config))
    return path


def turns(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Run]]:
    """Every command `rounds` times, in turn, once unmeasured before."""
    for command in commands.values():
        measure(command)
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(measure(command))
    return runs


def compare(folder: Path, rounds: int) -> None:
    """The releases at full size."""
    print("| whole process             |    ms | x headers | x headers and index | peak MiB |")
    print("| ------------------------- | ----: | --------: | ------------------: | -------: |")
    releases = {"BF16": ("none",), "FP8": ("fp8",), "NVFP4": ("nvfp4", "--shards", "120")}
    for title, (scheme, *flags) in releases.items():
        target = str(written(folder, scheme, "--scheme", scheme, *flags))
        runs = turns(
            {
                f"{title}: headers alone": [sys.executable, "-c", HEADERS, target],
                f"{title}: and the index": [sys.executable, "-c", INDEX_TOO, target],
                f"{title}: check": modelbones("check", target),
                f"{title}: check --json": modelbones("check", target, "--json"),
            },
            rounds,
        )
        alone, both = (median([run.seconds for run in each]) for each in list(runs.values())[:2])
        for name, each in runs.items():
            took = median([run.seconds for run in each])
            peak = max(run.peak for run in each) / PEAK_UNITS_PER_MIB
            print(f"| {name:<25} | {took * 1e3:5.0f} | {took / alone:9.2f} | {took / both:19.2f} | {peak:8.0f} |")


def grow(folder: Path, rounds: int, most: int) -> None:
    """The same model with more and more layers."""
    print("\n|   tensors | check s | us a tensor | peak MiB |")
    print("| --------: | ------: | ----------: | -------: |")
    wanted = [count for count in (62_500, 125_000, 250_000, 500_000, 1_000_000) if count <= most]
    for count in wanted:
        layers = count // (EXPERTS_A_LAYER + 27) + 1
        config = deeper(folder, layers)
        target = written(folder, f"layers-{layers}", "--shards", "120", model=str(config))
        listed = subprocess.run(modelbones("check", str(target), "--json"), stdout=subprocess.PIPE, check=True).stdout
        tensors = json.loads(listed)["tensors"]
        (runs,) = turns({"check": modelbones("check", str(target))}, rounds).values()
        took = median([run.seconds for run in runs])
        peak = max(run.peak for run in runs) / PEAK_UNITS_PER_MIB
        print(f"| {tensors:9,} | {took:7.2f} | {took / tensors * 1e6:11.2f} | {peak:8.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure check against the headers alone.")
    parser.add_argument("--rounds", type=int, default=11, help="times each command runs (default: 11)")
    parser.add_argument("--most", type=int, default=1_000_000, help="names to grow to (default: 1000000)")
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {args.rounds} rounds\n")
    with tempfile.TemporaryDirectory() as name:
        compare(Path(name), args.rounds)
        grow(Path(name), max(3, args.rounds // 3), args.most)
    # What this process held when it forked is the floor of every peak above.
    floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PEAK_UNITS_PER_MIB
    print(f"\nNo peak can be told below {floor:.0f} MiB.")


if __name__ == "__main__":
    main()
