"""How producers spell the modules a scheme leaves alone, as tests on a module's name.

A module's name is its weight's without ".weight".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from typing import Any

IsExcluded = Callable[[str], bool]
_WILD = re.compile(r"[*?[]")


def listed(entries: Any) -> tuple[str, ...]:
    """The strings of a list in a config; anything else in it says nothing."""
    return tuple(entry for entry in entries if isinstance(entry, str)) if isinstance(entries, list | tuple) else ()


def component_match(entries: Iterable[str]) -> IsExcluded:
    """An entry excludes a module when its dotted parts stand somewhere in the name, in a row.

    One leading "model." of an entry is dropped, which makes "model.layers.3.mlp.gate" find
    "model.language_model.layers.3.mlp.gate". Source: the 1,509 entries of the published
    GLM-5.3-Flash FP8 config exclude exactly its 1,432 unquantised tensors by this rule.
    """
    wanted = frozenset(entry.removeprefix("model.") for entry in entries)
    depth = max((entry.count(".") + 1 for entry in wanted), default=0)

    def is_excluded(module: str) -> bool:
        parts = module.split(".")
        return any(
            ".".join(parts[start : start + length]) in wanted
            for start in range(len(parts))
            for length in range(1, min(depth, len(parts) - start) + 1)
        )

    return is_excluded


def wildcard_match(entries: Iterable[str]) -> IsExcluded:
    """An entry is a shell pattern on the name, or a module above it.

    Both the stored prefix and the one without "language_model." are tried, as loaders do.
    Source: vllm-project/vllm vllm/model_executor/layers/quantization/modelopt.py::is_layer_excluded.
    """
    plain, patterns = _apart(entries, lambda entry: bool(_WILD.search(entry)))
    match = _match("|".join(translate(entry) for stem in patterns for entry in (stem, f"{stem}.*")) or "(?!)")
    assert match is not None

    def is_named(module: str) -> bool:
        return match(module) or any(above in plain for above in modules_above(module))

    return lambda module: is_named(module) or is_named(module.replace(".language_model.", ".", 1))


def modules_above(module: str) -> Iterable[str]:
    """The module itself, and every one it lies in."""
    parts = module.split(".")
    return (".".join(parts[:length]) for length in range(len(parts), 0, -1))


def _apart(entries: Iterable[str], is_pattern: Callable[[str], bool]) -> tuple[frozenset[str], list[str]]:
    """Plain names, which are looked up, and patterns, which are matched."""
    listed_entries = list(entries)
    patterns = [entry for entry in listed_entries if is_pattern(entry)]
    return frozenset(entry for entry in listed_entries if not is_pattern(entry)), patterns


def regex_or_name_match(entries: Iterable[str]) -> IsExcluded:
    """An entry is a full module name, or "re:" and a pattern matched from the name's start.

    Source: vllm-project/vllm vllm/model_executor/layers/quantization/compressed_tensors/utils.py.
    """
    plain, patterns = _apart(entries, lambda entry: entry.startswith("re:"))
    # One by one: an entry may set flags or name groups, which no joined pattern allows twice.
    compiled = [match for entry in patterns if (match := _match(entry[3:])) is not None]
    return lambda module: module in plain or any(match(module) for match in compiled)


def substring_match(entries: Iterable[str]) -> IsExcluded:
    """An entry excludes every module whose name it is a part of.

    Source: transformers 5.23 quantizers/quantizers_utils.py for AWQ; vllm-project/vllm
    vllm/model_executor/layers/quantization/awq.py::is_layer_skipped_awq.
    """
    wanted = tuple(entries)
    return lambda module: any(entry in module for entry in wanted)


def _match(pattern: str) -> IsExcluded | None:
    """The test on a name's start; None for a pattern that is none, which matches nothing."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None
    return lambda module: compiled.match(module) is not None
