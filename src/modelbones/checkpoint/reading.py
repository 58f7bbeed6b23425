"""A census while it grows: headers, wherever they come from, against each other and the index.

One bad file is a finding, and the rest is still read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from modelbones.checkpoint import agreement, fileset, index_text
from modelbones.checkpoint.census import Census, ShardFile
from modelbones.checkpoint.data import LENGTH_BYTES, ensure_data
from modelbones.checkpoint.fileset import FileSet
from modelbones.checkpoint.index import total_size_of
from modelbones.checkpoint.stored import Forms, Header, Stored
from modelbones.errors import HeaderError, SourceError, TruncatedError
from modelbones.findings import Code, Finding, Severity

Opened = tuple[Header, int, int] | HeaderError | SourceError
"""(header, header bytes, file bytes) of one file, or why it was not read."""


class OpenAll(Protocol):
    """Reads the headers of files, in any order; what went wrong with one file is its answer."""

    def __call__(self, names: Sequence[str], forms: Forms) -> Iterable[tuple[str, Opened]]:
        """(name, opened) for each of `names`."""


def take_census(source: FileSet, open_all: OpenAll, *, place: str) -> Census:
    """The census of a file set; `place` is how a person named it."""
    reading = Reading(source, open_all, place)
    reading.read_all()
    if reading.source.unparsed is not None and not reading.is_proven():
        again = fileset.parsed(reading.source)
        reading = Reading(again, open_all, place, forms=reading.forms, opened=reading.opened)
        reading.read_all()
    reading.compare()
    source = reading.source
    return Census(
        place=place,
        files=tuple(reading.shards),
        tensors=reading.tensors,
        unread=reading.unread,
        has_index=source.index is not None or source.unparsed is not None,
        findings=(*source.findings, *reading.findings),
    )


@contextmanager
def no_collection() -> Iterator[None]:
    """Headers become dicts and lists by the million and no cycle: collecting would only walk them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(slots=True)
class Reading:
    """The census while it grows. `opened` keeps what was read, for a second reading by a parsed index."""

    source: FileSet
    open_all: OpenAll
    place: str
    forms: Forms = field(default_factory=Forms)
    opened: dict[str, Opened] = field(default_factory=dict)
    shards: list[ShardFile] = field(default_factory=list)
    tensors: dict[str, Stored] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    total_size: object = None

    def read_all(self) -> None:
        """Each file of the set."""
        unopened = [name for name in self.source.names if name not in self.opened]
        self.opened.update(self.open_all(unopened, self.forms))
        for name in self.source.names:
            self.add(name, self.opened[name])

    def add(self, name: str, opened: Opened) -> None:
        """One file: into the census, or a finding, or (where only its size is wrong) both."""
        if isinstance(opened, HeaderError):
            self.fail(name, header_finding(opened), opened.names)
        elif isinstance(opened, SourceError):
            if self.source.is_single:
                raise SourceError(place=self.place, found=opened.found, fix=opened.fix)
            self.fail(name, self.source.absent(name, opened), ())
        else:
            self.count(name, *opened)

    def count(self, name: str, header: Header, header_bytes: int, file_bytes: int) -> None:
        """A file whose header was read, into the census; its size may still be a finding."""
        try:
            ensure_data(header, place=name, data_bytes=file_bytes - LENGTH_BYTES - header_bytes)
        except HeaderError as error:
            self.findings.append(header_finding(error))
        self.tensors.update(zip(header.names, header.stored, strict=True))
        self.shards.append(
            ShardFile(
                name=name,
                header_bytes=header_bytes,
                file_bytes=file_bytes,
                data_bytes=header.data_bytes,
                names=header.names,
                starts=header.starts,
                metadata=header.metadata,
            )
        )

    def fail(self, name: str, finding: Finding, names: Iterable[str]) -> None:
        """Note a file that was not read, with the tensors it is known to name."""
        self.findings.append(finding)
        self.failed.add(name)
        self.unread.update((tensor, name) for tensor in names)

    def is_proven(self) -> bool:
        """Whether the unparsed index is word for word the one these files ask for."""
        assert self.source.unparsed is not None
        metadata = None if self.failed else index_text.proven_metadata(self.source.unparsed, self.shards)
        self.total_size = total_size_of(metadata)
        return metadata is not None

    def compare(self) -> None:
        """All files against each other and against the index."""
        self.findings += agreement.tensors_twice(self.shards, len(self.tensors))
        index, place, total = self.source.index, self.source.index_name, self.total_size
        failed = self.failed | self.source.refused
        if index is not None:
            self.findings += agreement.compare(index, self.shards, place=place)
            if failed:
                self.unread.update((name, file) for name, file in index.weight_map.items() if file in failed)
            total = index.total_size
        if not failed:
            payload = sum(shard.data_bytes for shard in self.shards)
            on_disk = sum(shard.file_bytes for shard in self.shards)
            self.findings += agreement.total_size(total, payload_bytes=payload, file_bytes=on_disk, place=place)
        for name in [name for name in self.unread if name in self.tensors]:
            del self.unread[name]


def header_finding(error: HeaderError) -> Finding:
    """A file's refusal as a finding, about the file."""
    detail: dict[str, object] = {}
    if error.faults:
        detail["faults"] = [{"path": f.path, "found": f.found, "expected": f.expected} for f in error.faults]
    code, why = Code.HEADER, "loaders refuse the file, or read other bytes than were written"
    if isinstance(error, TruncatedError):
        code, why = Code.TRUNCATED, "the bytes past its end are nowhere: loading stops, or reads something else"
        detail = {
            "missing_bytes": error.missing_bytes,
            "partly": list(error.partly),
            "wholly": list(error.wholly),
        }
    return Finding(
        code=code,
        severity=Severity.ERROR,
        name=error.place,
        message=str(error),
        why=why,
        fix=error.fix,
        detail=detail,
    )
