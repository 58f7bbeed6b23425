"""The flags a start names: in the engine's own line, and in the arguments that are no default."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Read = Callable[[str], Any]


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 24 else None


def _flag(text: str) -> bool | None:
    return {"True": True, "False": False}.get(text)


def _word(text: str) -> str | None:
    bare = text.strip("'\"").replace("\\\\", "\\")
    return None if bare in ("", "None") else bare


_ENGINE: dict[str, tuple[str, Read]] = {
    "model": ("model", _word),
    "max_seq_len": ("max_model_len", _whole),
    "tensor_parallel_size": ("tp", _whole),
    "pipeline_parallel_size": ("pp", _whole),
    "data_parallel_size": ("dp", _whole),
    "decode_context_parallel_size": ("dcp", _whole),
    "kv_cache_dtype": ("kv_dtype", _word),
    "mamba_ssm_cache_dtype": ("state_dtype", _word),
    "enable_prefix_caching": ("prefix_caching", _flag),
}
"""The engine's word -> the field of an `EngineLog`, and how it is read."""
_ARGUMENTS: dict[str, tuple[str, Read]] = {
    **_ENGINE,
    "max_model_len": ("max_model_len", _whole),
    "max_num_batched_tokens": ("max_batched_tokens", _whole),
    "block_size": ("block_size", _whole),
    "model_tag": ("model", _word),
    "model": ("model", _word),
}
_VALUE = r"('[^']{0,512}'|\"[^\"]{0,512}\"|[A-Za-z0-9_.+-]{1,80})"
_IN_ENGINE = re.compile(rf"(?:^|[\s,(])([a-z_]{{3,40}})={_VALUE}")
_IN_ARGUMENTS = re.compile(rf"'([a-z_]{{3,40}})': {_VALUE}")
_DRAFTER = re.compile(r"speculative_config=\w*Config\(([^)]{0,512})\)")
_NO_DRAFTER = re.compile(r"speculative_config=None")
_SPEC_ARGUMENT = re.compile(r"'speculative_config': \{([^}]{0,512})\}")


def flags_of_engine(text: str) -> dict[str, Any]:
    """Fields the engine's own config line sets: `model='...', max_seq_len=131072, ...`."""
    flags: dict[str, Any] = {}
    drafter = _DRAFTER.search(text)
    if drafter is not None:
        flags = _drafting(dict(_IN_ENGINE.findall(drafter[1])))
    elif _NO_DRAFTER.search(text):
        flags = {"spec_method": "", "num_spec": 0}
    rest = text if drafter is None else text.replace(drafter[0], "", 1)
    return {**flags, **_known(_IN_ENGINE.findall(rest), _ENGINE)}


def flags_of_args(text: str) -> dict[str, Any]:
    """Fields the arguments set that are no default: `{'model': '...', 'max_model_len': 131072}`."""
    flags: dict[str, Any] = {}
    spec = _SPEC_ARGUMENT.search(text)
    rest = text
    if spec is not None:
        flags = _drafting(dict(_IN_ARGUMENTS.findall(spec[1])))
        rest = text.replace(spec[0], "", 1)
    pairs = _IN_ARGUMENTS.findall(rest)
    if "spec_method" in dict(pairs):
        flags = _drafting(dict(pairs))
    memory = _whole(dict(pairs).get("kv_cache_memory_bytes", ""))
    exact = {} if memory is None else {"exact_memory": (memory,)}
    return {**flags, **exact, **_known(pairs, _ARGUMENTS)}


def _known(pairs: list[tuple[str, str]], names: dict[str, tuple[str, Read]]) -> dict[str, Any]:
    """The first value of each known flag: nested configs repeat some of the words."""
    flags: dict[str, Any] = {}
    for key, text in pairs:
        if key in names:
            field, read = names[key]
            value = read(text)
            if value is not None:
                flags.setdefault(field, value)
    return flags


def _drafting(pairs: dict[str, str]) -> dict[str, Any]:
    """Who drafts, how many tokens, with which model."""
    method = _word(pairs.get("method", pairs.get("spec_method", "")))
    drafter = (
        _word(pairs.get("model", pairs.get("spec_model", "")))
        if "method" in pairs
        else _word(pairs.get("spec_model", ""))
    )
    counts = (
        _whole(pairs[key]) for key in ("num_spec_tokens", "num_speculative_tokens", "spec_tokens") if key in pairs
    )
    return {"spec_method": method, "num_spec": next(counts, None), "drafter": drafter}
