"""The `engines` report: whose rules are known, for which versions, and what they reproduce."""

from __future__ import annotations

from typing import Any

from modelbones.engines.vllm import known_versions
from modelbones.engines.vllm.figures import FIGURES
from modelbones.report.blocks import Block, Lines, Table


def engines_json() -> dict[str, Any]:
    """Every engine as JSON."""
    return {
        "schema": "modelbones/engines/1",
        "engines": [
            {
                "engine": "vllm",
                "versions": list(known_versions()),
                "figures": {
                    "allocator": FIGURES.allocator,
                    "from_memory": FIGURES.from_memory,
                    "from_blocks": FIGURES.from_blocks,
                    "structure": FIGURES.structure,
                },
            },
            {"engine": "transformers", "versions": ["dynamic", "static"], "figures": {}},
            {"engine": "metrale", "versions": [], "figures": {}},
        ],
    }


def engines_blocks() -> tuple[Block, ...]:
    """Every engine for people."""
    rows = (
        ("vllm", ", ".join(known_versions()), "blocks, groups, padding, both log lines"),
        ("transformers", "dynamic, static (cache class)", "one cache a batch; equal to the real caches, measured"),
        ("metrale", "-", "the seeds' engine: slots, reserve, pages"),
    )
    figures = (
        f"vllm reproduces {FIGURES.allocator} answers of its own allocator code; of public logs, "
        f"{FIGURES.from_memory} from the printed memory alone, {FIGURES.from_blocks} from a quoted block count, "
        f"and the structure of {FIGURES.structure} more."
    )
    return (Table(columns=("engine", "versions", "rules"), rows=rows), Lines(lines=(figures,)))
