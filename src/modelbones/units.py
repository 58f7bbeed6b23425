"""Exact integer sizes: parse, format, divide. No float touches a byte count.

K, M and G are powers of 1,024 for tokens ("128k" is 131,072) and for bytes
("96GiB"); decimal bytes are spelled with a B alone ("80GB").
"""

from __future__ import annotations

import re

from modelbones.errors import UsageError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

_BYTE_UNITS = {
    "": 1,
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": 1024 * GIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_COUNT_UNITS = {"": 1, "k": KIB, "m": MIB}
_QUANTITY = re.compile(r"\s*(\d{1,18}(?:[\d,_]{0,24}\d)?(?:\.\d{1,18})?)\s*([A-Za-z]*)\s*")


def ceil_div(numerator: int, denominator: int) -> int:
    """The quotient of two integers, rounded up; the denominator is positive."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least `value`."""
    return ceil_div(value, multiple) * multiple


def whole_bytes(bits: int) -> int:
    """Bytes of `bits`; a size that is no whole byte is refused, never rounded."""
    if bits % 8:
        raise UsageError(f"size: found {bits} bits; expected a whole number of bytes; pad the last dimension")
    return bits // 8


def parse_bytes(text: str) -> int:
    """Bytes of "96GiB", "80GB", "45.07GiB" (floored to a byte) or a bare number."""
    return _parse(text, _BYTE_UNITS, what="bytes", example="96GiB, 80GB or a number of bytes")


def parse_count(text: str) -> int:
    """A count of tokens or sequences: "131072", "131,072", "128k" (x 1,024) or "1m" (x 1,048,576)."""
    return _parse(text, _COUNT_UNITS, what="count", example="131072, 128k or 1m")


def _parse(text: str, units: dict[str, int], *, what: str, example: str) -> int:
    match = _QUANTITY.fullmatch(text)
    scale = units.get(match[2].lower()) if match else None
    if match is None or scale is None:
        raise UsageError(f'{what}: found "{text}"; expected {example}; write it so')
    whole, _, fraction = match[1].replace(",", "").replace("_", "").partition(".")
    parts: int = int(whole + fraction) * scale
    each: int = 10 ** len(fraction)
    if what == "count" and parts % each:
        raise UsageError(f'{what}: found "{text}"; expected a whole number such as {example}; write it so')
    return parts // each


def format_bytes(nbytes: int) -> str:
    """Bytes for a person: "2.20 GiB", "513 B"; print the exact number beside it.

    >>> format_bytes(2_363_654_144)
    '2.20 GiB'
    """
    for size, unit in ((1024 * GIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        # What rounds to 1,024 of the unit below is written in this one.
        if _hundredths(nbytes, size // KIB) >= 100 * KIB:
            hundredths = _hundredths(nbytes, size)
            return f"{hundredths // 100}.{hundredths % 100:02d} {unit}"
    return f"{nbytes} B"


def _hundredths(nbytes: int, size: int) -> int:
    return (nbytes * 200 + size) // (2 * size)


def format_exact(nbytes: int) -> str:
    """Both forms of a size: "2.20 GiB (2,363,654,144 bytes)"."""
    return f"{format_bytes(nbytes)} ({nbytes:,} bytes)"
