"""The lines of a log, whatever wrote it: any bytes, one bounded piece at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

MOST_CHARS = 256 * 1024 * 1024
"""A log is read this far; the start-up lines stand at its beginning."""
LONGEST_LINE = 64 * 1024
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""What a UTF-16 text begins with: some shells redirect so."""


def text_lines(stream: BinaryIO, *, most: int = MOST_CHARS) -> Iterator[str]:
    """The lines of `stream`, up to `most` characters; a longer line comes in pieces.

    Bytes that are no text are read as marks. A carriage return ends a line too.
    """
    head = stream.read(2)
    encoding = "utf-16" if head in _WIDE else "utf-8-sig"
    text = io.TextIOWrapper(io.BufferedReader(_Rejoined(head, stream)), encoding=encoding, errors="replace")
    left = most
    while left > 0:
        line = text.readline(min(LONGEST_LINE, left))
        if not line:
            return
        left -= len(line)
        yield line


class _Rejoined(io.RawIOBase):
    """`head`, then the rest of `stream`."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: object, /) -> int:
        """Fill `buffer` from what is left of the head, or from the stream."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        piece = self._head[: len(view)] if self._head else self._stream.read(len(view))
        self._head = self._head[len(piece) :] if self._head else b""
        view[: len(piece)] = piece
        return len(piece)
