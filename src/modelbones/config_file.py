"""Read one `config.json` into a mapping, strictly: what JSON leaves open is refused."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, NoReturn

from modelbones.errors import SourceError

MAX_CONFIG_BYTES = 64 * 1024 * 1024

_BAD_READS = {
    errno.ENOENT: ("not there", "name a directory, a config.json or a preset that `modelbones families` lists"),
    errno.ENOTDIR: ("a part of this path is not a directory", "correct the path"),
    errno.ELOOP: ("a loop of symbolic links", "replace the link by the file it should lead to"),
    errno.EACCES: ("not readable by this user", "change its permissions or run as its owner"),
    errno.EISDIR: ("a directory where a file is expected", "name the config.json itself"),
    errno.ENAMETOOLONG: ("a path longer than this system allows", "correct the path"),
}


def locate_config(path: Path) -> Path:
    """The config file MODEL names: itself, or the `config.json` inside the directory."""
    try:
        inside = path / "config.json"
        if not path.is_dir():
            return path
        if not inside.is_symlink() and not inside.exists():
            raise SourceError(
                place=str(path),
                found="a directory without config.json",
                fix="name the directory of a model, or its config.json",
            )
    except OSError as error:
        raise unreadable(path, error) from None
    return inside


def load_config(path: Path) -> dict[str, Any]:
    """The object in the file at `path`; anything but one JSON object raises `SourceError`."""
    try:
        if not path.is_file() and path.exists():
            _refuse(path, "not a regular file", "name a config.json")
        with path.open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        _refuse(path, "a path with a null character", "correct the path")
    return parse_config(raw, place=str(path))


def parse_config(raw: bytes, *, place: str) -> dict[str, Any]:
    """The object in `raw`; `place` names it in messages."""
    if len(raw) > MAX_CONFIG_BYTES:
        _refuse(place, f"more than {MAX_CONFIG_BYTES:,} bytes", "name a config.json, not a weight file")
    if not raw.strip():
        _refuse(place, "an empty file", "fetch it again")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(place, f"not UTF-8 at byte {error.start}", "save it as UTF-8")
    if text.startswith("\ufeff"):
        _refuse(place, "a byte order mark before the JSON", "save it as UTF-8 without one")
    value = _parse_json(text, place)
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")
        _refuse(place, f"{kind} at top level", "expected one JSON object; name a model's config.json")
    return value


def _parse_json(text: str, place: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    _refuse(place, f"the key {json.dumps(key[:60])} twice in one object", "keep the right one")
                seen.add(key)
        return result

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        _refuse(place, f"no valid JSON at line {error.lineno}, column {error.colno}", "correct it or fetch it again")
    except RecursionError:
        _refuse(place, "JSON nested deeper than any config", "fetch the model's own config.json")
    except ValueError:
        _refuse(place, "an integer with thousands of digits", "correct it or fetch it again")


def unreadable(path: Path, error: OSError) -> SourceError:
    """What a failed read of `path` means, in our words."""
    found, fix = _BAD_READS.get(error.errno or 0, ("not readable", "check the disk and the path"))
    return SourceError(place=str(path), found=found, fix=fix)


def _refuse(place: str | Path, found: str, fix: str) -> NoReturn:
    raise SourceError(place=str(place), found=found, fix=fix)
