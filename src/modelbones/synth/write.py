"""Write a synthetic checkpoint: whole, or not at all."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modelbones.errors import SourceError, UsageError
from modelbones.synth.fill import Fill, Writer, writer
from modelbones.synth.layout import Tensor, shards
from modelbones.units import format_exact

_INDEX = "model.safetensors.index.json"


def write_checkpoint(
    target: Path,
    listed: list[Tensor],
    config: Mapping[str, Any],
    *,
    fill: Fill,
    seed: int = 0,
    num_shards: int | None = None,
    is_forced: bool = False,
) -> int:
    """Write `listed` and `config` as the directory `target`; gives the number of shards.

    Everything is written beside `target` under another name, which takes its place at the
    end: an interruption leaves nothing behind.

    Raises:
        UsageError: `target` exists and `is_forced` is false, or the disk is too small.
        SourceError: The place cannot be written to.
    """
    if (target.exists() or target.is_symlink()) and not is_forced:
        raise UsageError(f"{target}: found something there; expected a new directory; name another or add --force")
    ensure_space(target.parent, sum(tensor.nbytes for tensor in listed), fill)
    try:
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError:
        raise SourceError(place=str(target.parent), found="a place no one can write to", fix="name another") from None
    try:
        files = shards(listed, num_shards)
        _write_files(work, files, writer(fill, seed))
        (work / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        _take_place(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return len(files)


def ensure_space(folder: Path, nbytes: int, fill: Fill) -> None:
    """Refuse a fill of real bytes that the disk has no room for."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a directory; expected one to write into; make it first")
    free = shutil.disk_usage(folder).free
    if fill is not Fill.SPARSE and nbytes > free:
        raise UsageError(
            f"{folder}: {format_exact(free)} free; expected {format_exact(nbytes)}; use --fill sparse or --shrink"
        )


def _write_files(work: Path, files: list[list[Tensor]], write: Writer) -> None:
    names = _file_names(len(files))
    for name, listed in zip(names, files, strict=True):
        _write_file(work / name, listed, write)
    if len(files) > 1:
        weight_map = {tensor.name: name for name, listed in zip(names, files, strict=True) for tensor in listed}
        total = sum(tensor.nbytes for listed in files for tensor in listed)
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (work / _INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _file_names(count: int) -> list[str]:
    if count == 1:
        return ["model.safetensors"]
    return [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]


def _write_file(path: Path, listed: list[Tensor], write: Writer) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in listed:
        end = offset + tensor.nbytes
        header[tensor.name] = {"dtype": tensor.dtype.value, "shape": tensor.shape, "data_offsets": (offset, end)}
        offset = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw)))
        file.write(raw)
        for tensor in listed:
            write(file, tensor)
        file.truncate(8 + len(raw) + offset)


def _take_place(work: Path, target: Path) -> None:
    """Put `work` where `target` is; what was there goes only when the new one stands."""
    if not target.exists() and not target.is_symlink():
        work.rename(target)
        return
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as aside:
        old = Path(aside) / "old"
        target.rename(old)
        try:
            work.rename(target)
        except OSError:
            old.rename(target)
            raise
