"""An index proven by writing it out: the files' own tensors, in the words writers use.

Parsing an index of 100,000 names takes most of the time of parsing all headers. Most are
written alike, so the index that the files ask for is written and compared, byte for byte:
equal text has equal meaning, with each key once. Any other is parsed (`index.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import orjson

from modelbones.checkpoint.census import ShardFile

_HEAD = b'{\n  "'
_MARK = b'  "weight_map": {\n'
_HEAD_BYTES = 65_536
_INDENTED = orjson.OPT_INDENT_2
# Source: transformers modeling_utils.py::save_pretrained, json.dumps(indent=2, sort_keys=True).
_STYLES = (_INDENTED | orjson.OPT_SORT_KEYS, _INDENTED)


def is_candidate(raw: bytes) -> bool:
    """Whether the index looks as writers write it, so that the proof is worth a try."""
    return raw.startswith(_HEAD) and raw.find(_MARK, 0, _HEAD_BYTES) > 0


def proven_metadata(raw: bytes, files: Sequence[ShardFile]) -> object:
    """The `metadata` of an index that names exactly these files and tensors; None if that is not proven."""
    at = raw.find(_MARK, 0, _HEAD_BYTES)
    try:
        top = orjson.loads(raw[:at] + b'"weight_map": {}}')
    except orjson.JSONDecodeError:
        return None
    weight_map: dict[str, str] = {}
    for file in files:
        weight_map.update(zip(file.names, repeat(file.name)))
    if not weight_map:
        return None
    top["weight_map"] = weight_map
    text = raw.rstrip()
    is_equal = any(orjson.dumps(top, option=style) == text for style in _STYLES)
    return top.get("metadata", {}) if is_equal else None
