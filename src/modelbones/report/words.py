"""Small phrases several reports share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modelbones.buffers import Buffer, Grows, Growth


def ranges(indices: Iterable[int]) -> str:
    """Sorted indices in short: "0-2, 4-6, 44"."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in _runs(sorted(indices)))


def _runs(indices: list[int]) -> Iterator[tuple[int, int]]:
    start = previous = None
    for index in indices:
        if previous is not None and start is not None and index != previous + 1:
            yield start, previous
            start = index
        start = index if start is None else start
        previous = index
    if start is not None and previous is not None:
        yield start, previous


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as it is written in the docs: "[128, 4096]"."""
    return f"[{', '.join(str(size) for size in shape)}]"


def resolved(revision: str | None) -> tuple[tuple[str, str], ...]:
    """The row that says which commit of the Hub a report is about; none for a model on disk."""
    return (("resolved commit", revision),) if revision is not None else ()


def growth_text(per: Growth) -> str:
    """How a buffer grows, in words."""
    match per.grows:
        case Grows.FIXED:
            return "once a sequence"
        case Grows.TOKEN:
            return "a token"
        case Grows.POOL:
            return f"every {per.k} tokens"
        case Grows.WINDOW:
            return f"a token, the last {per.k}"
        case Grows.RAGGED:
            return f"a token of an unfinished {per.k}"
        case Grows.LAST:
            return f"once from {per.k} tokens on"


def buffer_json(buffer: Buffer) -> dict[str, object]:
    """A buffer's declaration as JSON; `row_bytes` is per layer and sequence."""
    return {
        "name": buffer.name,
        "term": buffer.term,
        "shape": list(buffer.shape),
        "dtype": buffer.dtype.value,
        "grows": buffer.per.grows.value,
        "k": buffer.per.k,
        "home": buffer.home.value,
        "rewind": buffer.rewind.value,
        "row_bytes": buffer.row_bytes(),
    }
