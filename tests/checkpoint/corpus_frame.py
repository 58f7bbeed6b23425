"""Files wrong around or in the text of their header."""

from __future__ import annotations

from tests.checkpoint.corpus_words import FETCH, U8_2, Case, extra, framed, one, said

FRAME = (
    Case("an empty file", b"", said("a file of 0 bytes; expected at least 8, the length of its header", FETCH), False),
    Case("7 bytes", b"1234567", said("a file of 7 bytes; expected at least 8, the length of its header", FETCH), False),
    Case(
        "a header of no bytes",
        bytes(8),
        said('the header is empty; expected a JSON object from its first byte, "{"'),
        False,
    ),
    Case(
        "a header past the cap",
        framed(b"{}", length=100_000_001),
        said("its first 8 bytes give a header of 100,000,001 bytes; expected at most 100,000,000"),
        False,
    ),
    Case(
        "a length with its top bit set",
        framed(b"{}", length=2**64 - 1),
        said("its first 8 bytes give a header of 18,446,744,073,709,551,615 bytes; expected at most 100,000,000"),
        False,
    ),
    Case(
        "a header cut off",
        framed(b'{"a":', length=1000),
        said("the file ends at byte 13, inside its header of 1,000 bytes; expected at least 1,008 bytes", FETCH),
        False,
    ),
    Case(
        "8 bytes and no header",
        framed(b"", length=2),
        said("the file ends at byte 8, inside its header of 2 bytes; expected at least 10 bytes", FETCH),
        False,
    ),
    Case(
        "a Git LFS pointer",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "m.safetensors: the file is a Git LFS pointer; expected a safetensors file; "
        "fetch the file itself with `git lfs pull`",
        False,
    ),
    Case(
        "a PyTorch archive",
        b"PK\x03\x04" + bytes(40),
        "m.safetensors: the file is a zip archive, as PyTorch saves them; expected a safetensors file; "
        "convert it to safetensors",
        False,
    ),
    Case(
        "a web page",
        b"<!DOCTYPE html><html></html>",
        "m.safetensors: the file is a web page; expected a safetensors file; download the file itself",
        False,
    ),
    Case(
        "a GGUF file",
        b"GGUF" + bytes(40),
        "m.safetensors: the file is a GGUF file; expected a safetensors file; give it its own ending, .gguf",
        False,
    ),
    Case(
        "space before the brace",
        framed(b' {"a":' + U8_2 + b"}", b"xx"),
        said('the header begins with byte 0x20; expected a JSON object from its first byte, "{"'),
        True,
    ),
    Case(
        "a byte order mark",
        framed(b'\xef\xbb\xbf{"a":' + U8_2 + b"}", b"xx"),
        said('the header begins with byte 0xef; expected a JSON object from its first byte, "{"'),
        False,
    ),
    Case(
        "an array",
        framed(b"[]"),
        said('the header begins with byte 0x5b; expected a JSON object from its first byte, "{"'),
        False,
    ),
    Case("spaces behind the header", framed(b'{"a":' + U8_2 + b"} \n\t\r ", b"xx"), None, True),
    Case(
        "a NUL behind the header",
        framed(b'{"a":' + U8_2 + b"}\0", b"xx"),
        said("the header is not JSON; expected one JSON object"),
        False,
    ),
    Case("no tensors at all", framed(b"{}"), None, True),
    Case(
        "3 bytes too many", one(U8_2, b"xxxxx"), said("3 bytes after the last tensor; expected 2 bytes of data"), False
    ),
    Case(
        "1 byte missing",
        one(U8_2, b"x"),
        said('the file ends 1 byte early, and 1 tensor (1 in part) with it: "a"; expected 2 bytes of data', FETCH),
        False,
    ),
)

TEXT = (
    Case(
        "bytes that are not UTF-8",
        framed(b'{"\xff":' + U8_2 + b"}", b"xx"),
        said("byte 2 of the header is not UTF-8; expected UTF-8 text"),
        False,
    ),
    Case(
        "a lone surrogate",
        framed(b'{"\\ud800":' + U8_2 + b"}", b"xx"),
        said("the header is not JSON; expected one JSON object"),
        False,
    ),
    Case(
        "a line end inside a name",
        framed(b'{"a\nb":' + U8_2 + b"}", b"xx"),
        said("the header is not JSON; expected one JSON object"),
        False,
    ),
    Case("an escaped NUL in a name", framed(b'{"a\\u0000":' + U8_2 + b"}", b"xx"), None, True),
    Case("an empty name", framed(b'{"":' + U8_2 + b"}", b"xx"), None, True),
    Case("half an object", framed(b'{"a":'), said("the header is not JSON; expected one JSON object"), False),
    Case("two objects", framed(b"{}{}"), said("the header is not JSON; expected one JSON object"), False),
    Case("NaN", extra(b"NaN"), said("the header is not JSON; expected one JSON object"), False),
    Case("brackets 127 deep", extra(b"[" * 125 + b"]" * 125), None, True),
    Case(
        "brackets 128 deep",
        extra(b"[" * 126 + b"]" * 126),
        said("the header is nested more than 127 levels deep; expected 3 levels"),
        False,
    ),
    Case(
        "brackets 100,002 deep",
        extra(b"[" * 100_000 + b"]" * 100_000),
        said("the header is nested more than 127 levels deep; expected 3 levels"),
        False,
    ),
)
