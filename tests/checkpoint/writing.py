"""Small checkpoints on disk, for tests: U8 tensors, headers written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.checkpoint.corpus_words import framed


def shard(sizes: Mapping[str, int], *, metadata: Mapping[str, str] | None = None) -> bytes:
    """A file of U8 vectors of these sizes, one behind the other."""
    header: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name, size in sizes.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    return framed(json.dumps(header, separators=(",", ":")).encode(), bytes(end))


def write_shards(folder: Path, shards: Mapping[str, Mapping[str, int]]) -> None:
    """Each file with its tensors."""
    for file, sizes in shards.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(shard(sizes))


def write_index(folder: Path, weight_map: object, **metadata: object) -> None:
    """model.safetensors.index.json."""
    top = {"metadata": metadata, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(top, indent=2))
