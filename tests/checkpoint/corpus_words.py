"""How the corpus of malformed files is written: bytes of a file, and words of a message.

`message` is the whole message of our one finding, None where we accept. `package` is whether
safetensors 0.8 accepts; `DIFFERENCES` names the cases where the two disagree, and why.
"""

from __future__ import annotations

from typing import NamedTuple

DTYPES = (
    "BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, "
    "I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64"
)
MOST = "9,223,372,036,854,775,807"
AGAIN = "write or download the file again"
FETCH = "download the file again"


class Case(NamedTuple):
    name: str
    raw: bytes
    message: str | None
    package: bool


def framed(header: bytes, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A file: the length in front, the header, the data."""
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


def one(entry: bytes, data: bytes = b"xx") -> bytes:
    """A file of one tensor, "a"."""
    return framed(b'{"a":' + entry + b"}", data)


U8_2 = b'{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'


def shaped(shape: bytes, offsets: bytes = b"[0,2]", dtype: bytes = b'"U8"') -> bytes:
    return b'{"dtype":' + dtype + b',"shape":' + shape + b',"data_offsets":' + offsets + b"}"


def extra(value: bytes) -> bytes:
    return one(U8_2[:-1] + b',"x":' + value + b"}")


def said(text: str, fix: str = AGAIN) -> str:
    return f"m.safetensors: {text}; {fix}"


def tensor(text: str) -> str:
    return said(f'tensor "a": {text}')
