"""Which files a checkpoint consists of: by its index, or by what is in the directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from modelbones.checkpoint import index_text, numbering
from modelbones.checkpoint.agreement import index_finding
from modelbones.checkpoint.index import SUFFIX, Index, parse_index, read_text, why_refused
from modelbones.checkpoint.quote import counted, listed, quoted
from modelbones.checkpoint.safetensors import unreadable
from modelbones.errors import SourceError
from modelbones.findings import Finding, Severity

ENDING = ".safetensors"
STANDARD = f"model{SUFFIX}"
ReadIndex = Callable[[str], bytes]
"""The text of an index by its file name, or a SourceError."""
_UNLOADED = "weights that are not loaded stay as they were initialised"


@dataclass(slots=True, kw_only=True)
class FileSet:
    """The files to read, and what is wrong with the set.

    Attributes:
        names: File names to read, sorted.
        is_single: Whether MODEL is one file; that it cannot be read is then an error.
        index: The index, if one was parsed.
        unparsed: The text of an index that is likely what the files on disk ask for; `names` are these files.
        index_name: Its file name.
        where: Where the files are, in messages.
        refused: File names the index must not use.
        findings: What is wrong with the set.
    """

    names: tuple[str, ...] = ()
    is_single: bool = False
    index: Index | None = None
    unparsed: bytes | None = None
    index_name: str = STANDARD
    where: str = "on disk"
    refused: frozenset[str] = frozenset()
    findings: list[Finding] = field(default_factory=list)

    def absent(self, name: str, error: SourceError) -> Finding:
        """The finding for a file of the set that cannot be read."""
        message, count = f"{name}: {error.found}", 0
        if self.index is not None:
            count = self.index.counts[name]
            message += f"; expected the file that holds {counted(count, 'tensor')} of {self.index_name}"
        return index_finding(name, message, error.fix, why=_UNLOADED, detail={"count": count})


def locate(path: Path) -> tuple[FileSet, Path]:
    """The file set of MODEL and the directory it is in, or a SourceError where there is none."""
    name = path.name
    try:
        is_directory = path.is_dir()
        if not is_directory:
            path.stat()
    except (OSError, ValueError) as error:
        raise unreadable(path, error, place=str(path)) from None
    if is_directory:
        return from_listing(_listing(path), _reader(path), place=str(path)), path
    if name.endswith(SUFFIX):
        return _of_index(name, _weights(_listing(path.parent)), _reader(path.parent), FileSet()), path.parent
    if name.endswith(ENDING):
        return FileSet(names=(name,), is_single=True), path.parent
    found = "neither a directory nor a *.safetensors nor a *.safetensors.index.json file"
    raise SourceError(place=str(path), found=found, fix="name the checkpoint's directory")


def from_listing(listing: list[str], read_index: ReadIndex, *, place: str, where: str = "on disk") -> FileSet:
    """The file set of a directory with these file names, sorted."""
    files, indexes = _weights(listing), [name for name in listing if name.endswith(SUFFIX)]
    found = FileSet(where=where)
    if indexes:
        chosen = STANDARD if STANDARD in indexes else indexes[0]
        others = [name for name in indexes if name != chosen]
        found.findings = [_more_indexes(chosen, others)] if others else []
        return _of_index(chosen, files, read_index, found)
    if not files:
        raise SourceError(place=place, found="no *.safetensors file in it", fix="name the checkpoint's directory")
    return _of_files(files, found)


def _weights(listing: list[str]) -> list[str]:
    return [name for name in listing if name.endswith(ENDING)]


def _listing(folder: Path) -> list[str]:
    """The file names of a directory, sorted; hidden ones are none of ours."""
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise unreadable(folder, error, place=str(folder)) from None


def _reader(folder: Path) -> ReadIndex:
    return lambda name: read_text(folder / name, place=name)


def _of_index(index_name: str, files: list[str], read_index: ReadIndex, found: FileSet) -> FileSet:
    try:
        raw = read_index(index_name)
    except SourceError as error:
        return _without_index(files, error, found)
    likely = replace(found, names=tuple(files), unparsed=raw, index_name=index_name)
    if files and index_text.is_candidate(raw) and not any(map(why_refused, files)):
        return likely
    return parsed(likely)


def parsed(likely: FileSet) -> FileSet:
    """The file set as the unparsed index gives it, or as the directory does if the index is refused."""
    assert likely.unparsed is not None
    index_name, files = likely.index_name, list(likely.names)
    try:
        index = parse_index(likely.unparsed, place=index_name)
    except SourceError as error:
        return _without_index(files, error, replace(likely, unparsed=None))
    counts = index.counts
    reasons = {file: reason for file in sorted(counts) if (reason := why_refused(file))}
    findings = [_bad_name(file, reason, counts[file], index_name) for file, reason in reasons.items()]
    findings += [_stray(file, likely) for file in files if file not in counts]
    return replace(
        likely,
        names=tuple(file for file in sorted(counts) if file not in reasons),
        index=index,
        unparsed=None,
        refused=frozenset(reasons),
        findings=[*likely.findings, *findings],
    )


def _without_index(files: list[str], error: SourceError, found: FileSet) -> FileSet:
    name = error.place
    why = "loaders that go by the index cannot start"
    broken = index_finding(name, f"{name}: {error.found}", error.fix, why=why)
    return _of_files(files, replace(found, findings=[*found.findings, broken]))


def _of_files(files: list[str], found: FileSet) -> FileSet:
    runs = [*numbering.absent_of_total(files), *numbering.absent_inside(files)]
    findings = [*found.findings, *(_gap(run, found.where) for run in runs)]
    return replace(found, names=tuple(files), findings=findings)


def _gap(run: numbering.Run, where: str) -> Finding:
    number = run.num_absent
    return index_finding(
        run.absent[0] if number == 1 else run.pattern,
        f"{run.pattern}: {counted(run.present, 'file')} {where} and no index; expected {run.present + number:,}, "
        f"with {listed(run.absent, count=number)}",
        f"download the missing {'file' if number == 1 else 'files'} and the index",
        why=_UNLOADED,
        severity=Severity.WARNING,
        detail={"count": number, "files": list(run.absent)},
    )


def _bad_name(file: str, reason: str, count: int, index_name: str) -> Finding:
    return index_finding(
        file,
        f"{index_name}: file name {quoted(file)} {reason}; expected a name below the index's directory",
        "write the index again from the files",
        why=f"a file elsewhere must not be read; {counted(count, 'tensor')} of the index not looked for",
        detail={"count": count},
    )


def _stray(file: str, found: FileSet) -> Finding:
    return index_finding(
        file,
        f"{file}: {found.where} and not in {found.index_name}; expected only files the index names",
        "remove it, or write the index again from the files",
        why="a loader that takes every file reads it, one that goes by the index does not",
        severity=Severity.WARNING,
        detail={"stray": True},
    )


def _more_indexes(chosen: str, others: list[str]) -> Finding:
    return index_finding(
        others[0],
        f"{chosen}: {counted(len(others), 'more index')} beside it: {listed(others)}; expected one",
        "name the index that is meant",
        why="loaders may go by another index than the one read here",
        severity=Severity.NOTE,
    )
