"""How producers spell the modules a scheme leaves alone, as tests on a module's name.

A module's name is its weight's without ".weight".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

IsExcluded = Callable[[str], bool]


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
