"""One .safetensors file on disk: open it, read its header, judge both; never its data."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from modelbones.checkpoint.data import LENGTH_BYTES, header_length
from modelbones.checkpoint.header import parse_header
from modelbones.checkpoint.stored import Forms, Header
from modelbones.errors import SourceError, TruncatedError

# A pipe named like a checkpoint must not make us wait for its writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_SYSTEM = {
    errno.ENOENT: ("not on disk", "download it, or name a file that exists"),
    errno.ENOTDIR: ("not on disk", "download it, or name a file that exists"),
    errno.ELOOP: ("a link that leads back to itself", "replace the link with the file"),
    errno.EACCES: ("not readable: permission denied", "allow yourself to read it"),
    errno.EPERM: ("not readable: permission denied", "allow yourself to read it"),
    errno.EISDIR: ("a directory", "put the file itself there"),
    errno.ENAMETOOLONG: ("a name longer than the file system takes", "give it a shorter name"),
    errno.EMFILE: ("not opened: too many files are open", "raise the limit on open files"),
}


def read_header(path: Path, *, place: str, forms: Forms | None = None) -> tuple[Header, int, int]:
    """(header, header bytes, file bytes) of one file; SourceError if it cannot be read, HeaderError if refused.

    The data's length is not judged here: `data.ensure_data` does, on a header that is known.
    """
    handle, file_bytes = open_file(path, place=place)
    try:
        start = os.read(handle, LENGTH_BYTES + 1)
        length = header_length(start, place=place, file_bytes=file_bytes)
        os.lseek(handle, LENGTH_BYTES, os.SEEK_SET)
        raw = read_all(handle, length)
    except OSError as error:
        raise unreadable(path, error, place=place) from None
    finally:
        os.close(handle)
    if len(raw) < length:
        raise TruncatedError(
            place=place,
            found=f"the file ended at byte {LENGTH_BYTES + len(raw):,} while it was read",
            expected=f"a header of {length:,} bytes",
            fix="wait until the download is done",
            missing_bytes=length - len(raw),
        )
    return parse_header(raw, place=place, forms=forms), length, file_bytes


def open_file(path: Path, *, place: str) -> tuple[int, int]:
    """(descriptor, size) of a regular file, or a SourceError in our words."""
    try:
        handle = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise unreadable(path, error, place=place) from None
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode):
        return handle, status.st_size
    os.close(handle)
    found = _SYSTEM[errno.EISDIR][0] if stat.S_ISDIR(status.st_mode) else "no regular file"
    raise SourceError(place=place, found=found, fix=_SYSTEM[errno.EISDIR][1])


def read_all(handle: int, length: int) -> bytes:
    """`length` bytes from where the descriptor stands, or all there are."""
    raw = os.read(handle, length)
    while len(raw) < length and (more := os.read(handle, length - len(raw))):
        raw += more
    return raw


def unreadable(path: Path, error: OSError | ValueError, *, place: str) -> SourceError:
    """The system's refusal in our words."""
    number = error.errno if isinstance(error, OSError) else errno.ENOENT
    found, fix = _SYSTEM.get(number or 0, (f"not readable (system error {number})", "check the disk and the path"))
    if number == errno.ENOENT and path.is_symlink():
        found, fix = "a link to a file that is not there", "download the file it links to"
    return SourceError(place=place, found=found, fix=fix)
