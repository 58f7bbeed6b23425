"""An index against the files it names, and the files against each other, by tensor name.

The fast answer is one look a tensor; words and lists are made only where they disagree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from modelbones.checkpoint.census import ShardFile
from modelbones.checkpoint.index import Index
from modelbones.checkpoint.quote import counted, listed, quoted
from modelbones.findings import Code, Finding, Severity

_REWRITE = "write the index again from the files"
MOST_LISTED = 1000
"""Names a finding lists in its detail; `count` has the number of all."""


def index_finding(
    name: str,
    message: str,
    fix: str,
    *,
    why: str,
    severity: Severity = Severity.ERROR,
    detail: Mapping[str, object] | None = None,
) -> Finding:
    """A finding of code `index`; the way out is appended to its message."""
    return Finding(
        code=Code.INDEX,
        severity=severity,
        name=name,
        message=f"{message}; {fix}",
        why=why,
        fix=fix,
        detail=detail or {},
    )


def tensors_twice(files: Sequence[ShardFile], num_names: int) -> list[Finding]:
    """One finding for each two files that hold a tensor of the same name."""
    if sum(file.num_tensors for file in files) == num_names:
        return []
    holder: dict[str, str] = {}
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in files:
        for name in file.names:
            first = holder.setdefault(name, file.name)
            if first != file.name:
                shared[first, file.name].append(name)
    return [
        index_finding(
            _subject(names, second),
            f"{second}: {counted(len(names), 'tensor')} also stored in {quoted(first)}: {listed(names)}; "
            "expected each tensor in one file",
            "remove the copy that is not meant, and its file's other leftovers",
            why="which of the two is loaded depends on the loader",
            detail=_detail(names, file=second, other=first),
        )
        for (first, second), names in shared.items()
    ]


def compare(index: Index, files: Sequence[ShardFile], *, place: str) -> list[Finding]:
    """Index against files, in both directions. Tensors of files that were not read are not judged."""
    said = index.weight_map.get
    num_held = sum(file.num_tensors for file in files)
    # If each file holds only what the index puts there, and together as many, it is all.
    if all(set(map(said, file.names)) <= {file.name} for file in files):
        num_wanted = sum(index.counts[file.name] for file in files)
        if num_held == num_wanted:
            return []
    return _differences(index.weight_map, files, place)


def _differences(weight_map: Mapping[str, str], files: Sequence[ShardFile], place: str) -> list[Finding]:
    held: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for name in file.names:
            held[name].add(file.name)
    read = {file.name for file in files}
    absent: dict[str, list[str]] = defaultdict(list)
    misplaced: dict[tuple[str, str], list[str]] = defaultdict(list)
    unnamed: dict[str, list[str]] = defaultdict(list)
    for name, file_name in weight_map.items():
        if name not in held:
            if file_name in read:
                absent[file_name].append(name)
        elif file_name not in held[name]:
            misplaced[file_name, min(held[name])].append(name)
    for name, holders in held.items():
        if name not in weight_map:
            unnamed[min(holders)].append(name)
    return [*_absent(absent, place), *_misplaced(misplaced, place), *_unnamed(unnamed, place)]


def _absent(absent: Mapping[str, list[str]], place: str) -> Iterable[Finding]:
    for file, names in sorted(absent.items()):
        yield index_finding(
            _subject(names, file),
            f"{place}: {counted(len(names), 'tensor')} said to be in {quoted(file)} and stored nowhere: "
            f"{listed(names)}; expected every tensor the index names",
            f"{_REWRITE}, or write the missing tensors",
            why="loaders that go by the index stop, or leave these weights as they were initialised",
            detail=_detail(names, file=file),
        )


def _misplaced(misplaced: Mapping[tuple[str, str], list[str]], place: str) -> Iterable[Finding]:
    for (said, holder), names in sorted(misplaced.items()):
        yield index_finding(
            _subject(names, holder),
            f"{place}: {counted(len(names), 'tensor')} said to be in {quoted(said)} and stored in {quoted(holder)}: "
            f"{listed(names)}; expected the file that holds each",
            _REWRITE,
            why="loaders that go by the index do not find these weights",
            detail=_detail(names, file=holder, other=said),
        )


def _unnamed(unnamed: Mapping[str, list[str]], place: str) -> Iterable[Finding]:
    for file, names in sorted(unnamed.items()):
        yield index_finding(
            _subject(names, file),
            f"{place}: {counted(len(names), 'tensor')} in {quoted(file)} not in the index: {listed(names)}; "
            "expected every stored tensor",
            _REWRITE,
            why="loaders that go by the index leave these weights as they were initialised",
            detail=_detail(names, file=file),
        )


def total_size(total: object, *, payload_bytes: int, file_bytes: int, place: str) -> list[Finding]:
    """`metadata.total_size` against what is stored; asked only where every file was read."""
    if total is None or (type(total) is int and total == payload_bytes):
        return []
    is_number = type(total) in (int, float)
    if is_number and total == payload_bytes:
        message, severity = f"is the float {total!r}; expected the integer {payload_bytes:,}", Severity.NOTE
    elif is_number and total == file_bytes:
        message = f"is {total:,}, the files' size with their headers; expected the tensors' {payload_bytes:,} bytes"
        severity = Severity.NOTE
    else:
        shown = f"{total:,}" if is_number and isinstance(total, int) else quoted(str(total))
        message, severity = f"is {shown}; expected the tensors' {payload_bytes:,} bytes", Severity.WARNING
    return [
        index_finding(
            place,
            f"{place}: metadata.total_size {message}",
            _REWRITE,
            why="progress bars and memory estimates go by it",
            severity=severity,
            detail={"payload_bytes": payload_bytes, "file_bytes": file_bytes},
        )
    ]


def _subject(names: Sequence[str], file: str) -> str:
    return names[0] if len(names) == 1 else file


def _detail(names: Sequence[str], **files: str) -> dict[str, object]:
    return {"count": len(names), "tensors": list(names[:MOST_LISTED]), **files}
