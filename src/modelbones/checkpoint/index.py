"""model.safetensors.index.json: which file holds which tensor; parsed, not yet compared."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from modelbones.checkpoint.quote import counted, listed, quoted
from modelbones.checkpoint.safetensors import open_file, read_all, unreadable
from modelbones.checkpoint.text import diagnose
from modelbones.errors import SourceError

INDEX_CAP = 500_000_000
"""The longest index read: some 4,000,000 names."""
SUFFIX = ".safetensors.index.json"
_FIX = "write or download the index again"
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index that is right in itself.

    Attributes:
        weight_map: Tensor name -> file name.
        counts: File name -> tensors the index puts there.
        total_size: What `metadata.total_size` says, whatever it is; None if nothing.
    """

    weight_map: Mapping[str, str]
    counts: Counter[str]
    total_size: object


def read_text(path: Path, *, place: str) -> bytes:
    """The bytes of the index at `path`, or a SourceError in our words."""
    handle, size = open_file(path, place=place)
    try:
        if size > INDEX_CAP:
            raise _refused(place, f"an index of {size:,} bytes", f"at most {INDEX_CAP:,}")
        return read_all(handle, size)
    except OSError as error:
        raise unreadable(path, error, place=place) from None
    finally:
        os.close(handle)


def parse_index(raw: bytes, *, place: str) -> Index:
    """The index in `raw`, or a SourceError: not JSON, a key twice, a value of the wrong kind."""
    try:
        top = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise _refused(place, *diagnose(raw, what="index")) from None
    weight_map = top.get("weight_map") if type(top) is dict else None
    if type(weight_map) is not dict or not weight_map:
        found = "no weight_map" if weight_map is None else "an empty weight_map" if weight_map == {} else "a weight_map"
        wrong = f"{found} that is no object" if found == "a weight_map" else found
        raise _refused(place, wrong, "an object of tensor names and file names")
    counts = _counts(weight_map, place=place)
    metadata = top.get("metadata")
    fields = metadata if type(metadata) is dict else {}
    # Every key has a colon after it; no more colons than keys kept: none was dropped.
    if raw.count(b":") != len(top) + len(weight_map) + len(fields):
        _ensure_keys_once(raw, place=place)
    return Index(weight_map=weight_map, counts=counts, total_size=total_size_of(metadata))


def total_size_of(metadata: object) -> object:
    """What an index's metadata give as total_size, whatever it is; None if nothing."""
    return metadata.get("total_size") if isinstance(metadata, dict) else None


def _counts(weight_map: Mapping[str, object], *, place: str) -> Counter[str]:
    """Tensors by file name; only a string equals a string, so its keys tell the values' types."""
    with suppress(TypeError):
        counts = Counter(weight_map.values())
        if set(map(type, counts)) == {str}:
            return counts  # type: ignore[return-value]  # strings, as just seen
    wrong = [name for name, file in weight_map.items() if type(file) is not str]
    raise _refused(place, f"no file name for {listed(wrong)}", "a string")


def why_refused(file: str) -> str | None:
    """Why an index must not name this file: its path leaves the directory; None if it may."""
    if "\\" in file or "\0" in file:
        return "has a backslash" if "\\" in file else "has a NUL byte"
    if file.startswith("/") or _DRIVE.match(file):
        return "is an absolute path"
    parts = file.split("/")
    if ".." in parts:
        return "leaves the directory"
    return "is no plain path" if "" in parts or "." in parts else None


def _ensure_keys_once(raw: bytes, *, place: str) -> None:
    from modelbones.checkpoint.text import DEEPEST, Members, is_too_deep, read_members

    if is_too_deep(raw):
        raise _refused(place, f"the index is nested more than {DEEPEST} levels deep", "2 levels")
    top = read_members(raw)
    assert isinstance(top, Members)
    for where, members in [("", top), *top]:
        if isinstance(members, Members):
            twice = [key for key, _ in members.repeated()]
            if twice:
                inside = f" in {quoted(where)}" if where else ""
                raise _refused(
                    place, f"{counted(len(twice), 'key')} more than once{inside}: {listed(twice)}", "each once"
                )


def _refused(place: str, found: str, expected: str) -> SourceError:
    return SourceError(place=place, found=f"{found}; expected {expected}", fix=_FIX)
