"""`read_checkpoint`: a directory, an index or one file, to a `Census`.

One bad file is a finding, and the rest is still read. Only a MODEL that cannot be read at
all is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from modelbones.checkpoint import agreement, fileset
from modelbones.checkpoint.census import Census, ShardFile
from modelbones.checkpoint.data import LENGTH_BYTES, ensure_data
from modelbones.checkpoint.fileset import FileSet
from modelbones.checkpoint.safetensors import read_header
from modelbones.checkpoint.stored import Forms, Stored
from modelbones.errors import HeaderError, SourceError, TruncatedError
from modelbones.findings import Code, Finding, Severity


def read_checkpoint(path: str | os.PathLike[str]) -> Census:
    """What is stored at `path`: a directory, a `*.safetensors.index.json` or one `*.safetensors`.

    Raises SourceError where there is nothing to read: no such path, no permission, a
    directory without safetensors files. All else is in the census's findings.
    """
    source = Path(path)
    files = fileset.locate(source)
    reading = _Reading(files)
    for name in files.names:
        reading.read(name)
    reading.compare()
    return Census(
        place=str(path),
        files=tuple(reading.shards),
        tensors=reading.tensors,
        unread=reading.unread,
        has_index=files.index is not None,
        findings=(*files.findings, *reading.findings),
    )


@dataclass(slots=True)
class _Reading:
    """The census while it grows."""

    source: FileSet
    shards: list[ShardFile] = field(default_factory=list)
    tensors: dict[str, Stored] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    forms: Forms = field(default_factory=Forms)
    failed: set[str] = field(default_factory=set)

    def read(self, name: str) -> None:
        """One file: into the census, or a finding, or (where only its size is wrong) both."""
        try:
            header, header_bytes, file_bytes = read_header(self.source.folder / name, place=name, forms=self.forms)
        except HeaderError as error:
            self.fail(name, header_finding(error), error.names)
            return
        except SourceError as error:
            if self.source.is_single:
                place = str(self.source.folder / name)
                raise SourceError(place=place, found=error.found, fix=error.fix) from None
            self.fail(name, self.source.absent(name, error), ())
            return
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

    def compare(self) -> None:
        """All files against each other and against the index."""
        self.findings += agreement.tensors_twice(self.shards, len(self.tensors))
        index, place = self.source.index, self.source.index_name
        if index is not None:
            failed = self.failed | self.source.refused
            self.findings += agreement.compare(index, self.shards, place=place)
            if failed:
                self.unread.update((name, file) for name, file in index.weight_map.items() if file in failed)
            else:
                payload = sum(shard.data_bytes for shard in self.shards)
                on_disk = sum(shard.file_bytes for shard in self.shards)
                self.findings += agreement.total_size(index, payload_bytes=payload, file_bytes=on_disk, place=place)
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
