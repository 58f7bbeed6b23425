"""Write a synthetic checkpoint: whole, or not at all."""

from __future__ import annotations

import errno
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

_LARGEST = 2**63 - 1
"""No file system gives an offset above this."""
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
    try:
        if _stands(target) and not is_forced:
            raise UsageError(f"{target}: found something there; expected a new directory; name another or add --force")
        ensure_space(target.parent, sum(tensor.nbytes for tensor in listed), fill)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            files = shards(listed, num_shards)
            _write_files(work, files, writer(fill, seed))
            (work / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            _take_place(work, target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None
    return len(files)


_REFUSALS = {
    errno.ENOSPC: ("no space left on this disk", "free some, or use --fill sparse or --shrink"),
    errno.EDQUOT: ("no space left in this user's quota", "free some, or use --fill sparse or --shrink"),
    errno.EFBIG: ("a file larger than this file system holds", "write more files with --shards"),
    errno.EACCES: ("a place this user cannot write to", "name another"),
    errno.EPERM: ("a place this user cannot write to", "name another"),
    errno.EROFS: ("a file system that is read only", "name another"),
    errno.EBUSY: ("a directory that is in use and cannot be replaced", "name another"),
    errno.ENAMETOOLONG: ("a name longer than the file system takes", "name a shorter one"),
    errno.ELOOP: ("a loop of symbolic links", "name another"),
}


def _unwritable(target: Path, error: OSError | ValueError) -> SourceError:
    """The system's refusal in our words."""
    if isinstance(error, ValueError):
        return SourceError(place=str(target), found="a path with a null character", fix="name another")
    number = error.errno or 0
    found, fix = _REFUSALS.get(number, (f"not writable (system error {number})", "check the disk and the path"))
    return SourceError(place=str(target), found=found, fix=fix)


def ensure_space(folder: Path, nbytes: int, fill: Fill) -> None:
    """Refuse a fill of real bytes that the disk has no room for."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a directory; expected one to write into; make it first")
    if nbytes > _LARGEST:
        raise UsageError(f"{folder}: {nbytes:,} bytes to write; expected at most {_LARGEST:,}; use --shrink")
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
    if not _stands(target):
        work.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    old = aside / "old"
    try:
        target.rename(old)
        work.rename(target)
    finally:
        # Whatever interrupts the two renames, one of the two directories stands at the end.
        if _stands(old) and not _stands(target):
            old.rename(target)
        shutil.rmtree(aside, ignore_errors=True)


def _stands(path: Path) -> bool:
    """Whether anything is there, a link that leads nowhere included."""
    return path.exists() or path.is_symlink()
