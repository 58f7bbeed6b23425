"""The headers of a repository's files, by ranges: one round trip each where the guess is long enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from modelbones.checkpoint.data import LENGTH_BYTES, header_length
from modelbones.checkpoint.directory import open_file
from modelbones.checkpoint.fetch import MOST_REDIRECTS, Body, Fetcher, Moved, Span
from modelbones.checkpoint.header import parse_header
from modelbones.checkpoint.reading import Opened
from modelbones.checkpoint.refusals import NOT_THERE, bad_redirect
from modelbones.checkpoint.stored import Forms
from modelbones.checkpoint.workers import Workers
from modelbones.errors import HeaderError, SourceError

MOST_AT_ONCE = 48
"""Requests under way at the same time."""
ALL_FIRST_BYTES = 32 * 1024 * 1024
LEAST_FIRST_BYTES, MOST_FIRST_BYTES = 128 * 1024, 2 * 1024 * 1024


def first_bytes(num_files: int) -> int:
    """How much of each file is asked for at first.

    A header of 1,000 tensors takes some 130,000 bytes. Together the first ranges take at
    most 32 MiB, a third of a second at 100 MB/s, unless there are more than 256 files.
    """
    return min(MOST_FIRST_BYTES, max(LEAST_FIRST_BYTES, ALL_FIRST_BYTES // max(num_files, 1)))


@dataclass(slots=True)
class _Read:
    """One file's header while it comes."""

    name: str
    url: str
    wanted: Span
    raw: bytes = b""
    redirects: int = 0


@dataclass(slots=True, kw_only=True)
class RemoteHeaders:
    """Headers under way and read.

    Attributes:
        fetcher: Sends the requests.
        workers: The threads they are sent from.
        url_of: A file's address.
        prefix: What stands before a file's name in messages.
        files: The files there are.
        snapshot: A directory that may hold some of them; they are read there.
        progress: Told how many files of how many are read.
    """

    fetcher: Fetcher
    workers: Workers
    url_of: Callable[[str], str]
    prefix: str
    files: frozenset[str]
    snapshot: Path | None = None
    progress: Callable[[int, int], None] | None = None
    _pending: dict[Future[Any], _Read] = field(default_factory=dict)
    _done: SimpleQueue[Future[Any]] = field(default_factory=SimpleQueue)

    def begin(self, names: Sequence[str]) -> None:
        """Ask for the start of each of these files that are not cached."""
        under_way = {read.name for read in self._pending.values()}
        absent = [name for name in names if self._cached(name) is None and name not in under_way]
        span = Span(0, first_bytes(len(absent)) - 1)
        for name in absent:
            self._send(_Read(name, self.url_of(name), span))

    def open_all(self, names: Sequence[str], forms: Forms) -> Iterator[tuple[str, Opened]]:
        """(name, opened) for each of `names`, as they come; what the Hub refuses is raised."""
        self.begin([name for name in names if name in self.files])
        for num_done, (name, opened) in enumerate(self._opened(names, forms), start=1):
            if self.progress is not None:
                self.progress(num_done, len(names))
            yield name, opened

    def _opened(self, names: Sequence[str], forms: Forms) -> Iterator[tuple[str, Opened]]:
        for name in names:
            cached = self._cached(name)
            if cached is not None:
                yield name, open_file(cached, name, forms)
            elif name not in self.files:
                found, fix = NOT_THERE
                yield name, SourceError(place=name, found=found, fix=fix)
        wanted = set(names)
        self._pending = {future: read for future, read in self._pending.items() if read.name in wanted}
        while self._pending:
            future = self._done.get()
            read = self._pending.pop(future, None)
            opened = None if read is None else self._next(read, future.result(), forms)
            if read is not None and opened is not None:
                yield read.name, opened

    def _cached(self, name: str) -> Path | None:
        path = None if self.snapshot is None else self.snapshot / name
        return path if path is not None and path.is_file() else None

    def _send(self, read: _Read) -> None:
        wanted = read.wanted
        place, most = f"{self.prefix}/{read.name}", wanted.last - wanted.first + 1
        future = self.workers.submit(partial(self.fetcher.step, read.url, wanted, place=place, most_bytes=most))
        self._pending[future] = read
        future.add_done_callback(self._done.put)

    def _next(self, read: _Read, answer: Body | Moved, forms: Forms) -> Opened | None:
        """What became of a file; None where there is more to ask for."""
        if isinstance(answer, Moved):
            read.url, read.redirects = answer.url, read.redirects + 1
            if read.redirects > MOST_REDIRECTS:
                raise bad_redirect(f"that leads on for {MOST_REDIRECTS} times", place=f"{self.prefix}/{read.name}")
            self._send(read)
            return None
        read.raw += answer.raw
        try:
            start = read.raw[: LENGTH_BYTES + 1]
            length = header_length(start, place=read.name, file_bytes=answer.file_bytes)
            end = LENGTH_BYTES + length
            if len(read.raw) < end:
                read.wanted = Span(len(read.raw), end - 1)
                self._send(read)
                return None
            header = parse_header(read.raw[LENGTH_BYTES:end], place=read.name, forms=forms)
        except HeaderError as error:
            error.__context__ = None  # Kept errors must not keep the bytes of their file.
            return error.with_traceback(None)
        return header, length, answer.file_bytes
