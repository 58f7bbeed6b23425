"""A header against the size of its file: the length in front, the data behind."""

from __future__ import annotations

from modelbones.checkpoint.quote import counted, listed
from modelbones.checkpoint.stored import AGAIN, Header
from modelbones.errors import HeaderError, TruncatedError

LENGTH_BYTES = 8
HEADER_CAP = 100_000_000
"""The longest header read. Source: safetensors 0.8 tensor.rs::MAX_HEADER_SIZE."""
FETCH = "download the file again"

_OTHERS = (
    (b"version ", "a Git LFS pointer", "fetch the file itself with `git lfs pull`"),
    (b"GGUF", "a GGUF file", "give it its own ending, .gguf"),
    (b"PK\x03\x04", "a zip archive, as PyTorch saves them", "convert it to safetensors"),
    (b"<!", "a web page", "download the file itself"),
    (b"<htm", "a web page", "download the file itself"),
)


def header_length(start: bytes, *, place: str, file_bytes: int) -> int:
    """The header's length from the file's first 9 bytes (or all it has), judged before anything is read."""
    _ensure_kind(start, place=place)
    if file_bytes < LENGTH_BYTES:
        found = f"a file of {counted(file_bytes, 'byte')}"
        raise HeaderError(place=place, found=found, expected="at least 8, the length of its header", fix=FETCH)
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if length > HEADER_CAP:
        found = f"its first 8 bytes give a header of {length:,} bytes"
        raise HeaderError(place=place, found=found, expected=f"at most {HEADER_CAP:,}", fix=AGAIN)
    if length == 0 or file_bytes > LENGTH_BYTES:
        ensure_brace(start[LENGTH_BYTES:], place=place)
    end = LENGTH_BYTES + length
    if end > file_bytes:
        raise TruncatedError(
            place=place,
            found=f"the file ends at byte {file_bytes:,}, inside its header of {length:,} bytes",
            expected=f"at least {end:,} bytes",
            fix=FETCH,
            missing_bytes=end - file_bytes,
        )
    return length


def ensure_brace(raw: bytes, *, place: str) -> None:
    """Refuse a header that does not start with `{`, which the format demands."""
    if not raw.startswith(b"{"):
        found = f"the header begins with byte 0x{raw[0]:02x}" if raw else "the header is empty"
        raise HeaderError(place=place, found=found, expected='a JSON object from its first byte, "{"', fix=AGAIN)


def ensure_data(header: Header, *, place: str, data_bytes: int) -> None:
    """Refuse a file whose data is shorter or longer than its header speaks of."""
    expected = f"{header.data_bytes:,} bytes of data"
    if data_bytes > header.data_bytes:
        found = f"{counted(data_bytes - header.data_bytes, 'byte')} after the last tensor"
        raise HeaderError(place=place, found=found, expected=expected, fix=AGAIN, names=header.names)
    if data_bytes < header.data_bytes:
        partly, wholly = _cut(header, data_bytes)
        lost = [*partly, *wholly]
        missing = header.data_bytes - data_bytes
        raise TruncatedError(
            place=place,
            found=f"the file ends {counted(missing, 'byte')} early, and {counted(len(lost), 'tensor')} "
            f"({len(partly)} in part) with it: {listed(lost)}",
            expected=expected,
            fix=FETCH,
            missing_bytes=missing,
            partly=partly,
            wholly=wholly,
        )


def _ensure_kind(start: bytes, *, place: str) -> None:
    for magic, kind, fix in _OTHERS:
        if start.startswith(magic):
            raise HeaderError(place=place, found=f"the file is {kind}", expected="a safetensors file", fix=fix)


def _cut(header: Header, data_bytes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tensors that pass the end, in the order of the data: begun before it, and not."""
    rows = zip(header.starts, header.names, header.stored, strict=True)
    past = sorted((start, name) for start, name, stored in rows if start + stored.nbytes > max(data_bytes, start))
    partly = tuple(name for start, name in past if start < data_bytes)
    wholly = tuple(name for start, name in past if start >= data_bytes)
    return partly, wholly
