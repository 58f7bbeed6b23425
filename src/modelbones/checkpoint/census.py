"""What a checkpoint stores, as read from its headers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from modelbones.checkpoint.stored import Stored
from modelbones.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFile:
    """One file whose header was read.

    Attributes:
        name: Its path below the checkpoint's directory, with slashes.
        header_bytes: Length of its JSON header, padding included.
        file_bytes: Its size on disk.
        data_bytes: Length of the data its header speaks of.
        names: Its tensors, in the header's order.
        starts: Where each begins, in bytes from the start of the data.
        metadata: Its `__metadata__`.
    """

    name: str
    header_bytes: int
    file_bytes: int
    data_bytes: int
    names: tuple[str, ...] = field(repr=False)
    starts: array[int] = field(repr=False)
    metadata: Mapping[str, str]

    @property
    def num_tensors(self) -> int:
        """Tensors in this file."""
        return len(self.names)


class Span(NamedTuple):
    """Where one tensor's bytes are: file name, first byte and the one after the last, from the file's start."""

    file: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """All tensors a checkpoint stores, and what is wrong with its files.

    Attributes:
        place: The directory or file that was read, as given.
        files: The files read, sorted by name; a refused one is a finding instead.
        tensors: Name -> how it is stored, file by file. A name in two files (a finding) is the later one's.
        unread: Name -> file, for tensors that are known to be in a file that is missing or was refused.
        has_index: Whether an index gave the file set.
        findings: What is wrong, in reading order; codes `header`, `truncated` and `index`.
    """

    place: str
    files: tuple[ShardFile, ...]
    tensors: Mapping[str, Stored] = field(repr=False)
    unread: Mapping[str, str] = field(repr=False)
    has_index: bool
    findings: tuple[Finding, ...]

    @property
    def payload_bytes(self) -> int:
        """Bytes of all tensors' data, headers not counted."""
        return sum(file.data_bytes for file in self.files)

    @property
    def file_bytes(self) -> int:
        """Bytes of all files read."""
        return sum(file.file_bytes for file in self.files)

    def files_of(self) -> dict[str, str]:
        """Tensor name -> file name, for all tensors; made anew at each call."""
        return {name: file.name for file in self.files for name in file.names}

    def span(self, name: str) -> Span:
        """Where the tensor's bytes are; KeyError if it is not stored. It searches: ask for a few, not for all."""
        stored = self.tensors[name]
        for file in reversed(self.files):
            if name in file.names:
                start = 8 + file.header_bytes + file.starts[file.names.index(name)]
                return Span(file.name, start, start + stored.nbytes)
        raise KeyError(name)
