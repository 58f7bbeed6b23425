"""`engines`: whose rules are known, and what they reproduce."""

from __future__ import annotations

from modelbones.engines.vllm import known_versions
from modelbones.engines.vllm.figures import FIGURES
from tests.cli.running import Cli


def test_engines_versions_and_figures_by_class(run: Cli) -> None:
    ran = run("engines", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.data["schema"] == "modelbones/engines/1"
    vllm, transformers, metrale = ran.data["engines"]
    assert vllm["engine"] == "vllm"
    assert vllm["versions"] == list(known_versions())
    assert vllm["figures"] == {
        "allocator": FIGURES.allocator,
        "from_memory": FIGURES.from_memory,
        "from_blocks": FIGURES.from_blocks,
        "structure": FIGURES.structure,
    }
    assert transformers == {"engine": "transformers", "versions": ["dynamic", "static"], "figures": {}}
    assert metrale == {"engine": "metrale", "versions": [], "figures": {}}


def test_every_listed_version_can_be_planned_with(run: Cli) -> None:
    for entry in run("engines", "--json").data["engines"]:
        for version in entry["versions"] or [""]:
            name = f"{entry['engine']}@{version}" if version else entry["engine"]
            ran = run("plan", "llama-3.1-8b", "--engine", name, "--kv-memory", "20GiB", "--json")
            assert (ran.code, ran.data["version"]) == (0, version or None), name


def test_people_read_the_same_counts(run: Cli) -> None:
    shown = " ".join(run("engines").out.split())
    for words in (
        f"vllm reproduces {FIGURES.allocator} answers of its own allocator code",
        f"{FIGURES.from_memory} from the printed memory alone",
        f"{FIGURES.from_blocks} from a quoted block count",
        f"the structure of {FIGURES.structure} more",
    ):
        assert words in shown
    assert run("engines", "--format", "md").code == 0
