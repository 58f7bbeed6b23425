"""Why a figure does not match: another version's rules, another rank's memory, or a fork."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from modelbones.engines.vllm import CachePlan, ModelStates, VllmSettings, known_versions, plan_states
from modelbones.errors import ModelbonesError
from modelbones.explain.figures import Figure, compare
from modelbones.explain.log import EngineLog
from modelbones.explain.pool import Pool, gib_of, pool_of
from modelbones.explain.start import Given

CAPABILITIES = (9, 10, 12, 8)
FORK = "no known version gives it with these settings; likeliest a fork's own rule, or a setting the log does not print"


def outline(model: ModelStates, settings: VllmSettings) -> CachePlan:
    """The layout of a start before its blocks are counted.

    Raises:
        EngineRefusedError: The engine would not start so, or no source tells.
        UsageError: A setting is missing or could not be.
    """
    return plan_states(model, settings, num_blocks=0)


def agrees(log: EngineLog, model: ModelStates, settings: VllmSettings) -> bool:
    """Whether some figure is recomputed under `settings`, and every one that is matches."""
    try:
        plan = outline(model, settings)
    except ModelbonesError:
        return False
    verdicts = {figure.matches for figure in compare(log, plan, pool_of(log, plan))}
    return True in verdicts and False not in verdicts


def agreeing_versions(log: EngineLog, model: ModelStates, settings: VllmSettings) -> tuple[str, ...]:
    """Known versions whose rules give every figure, oldest first."""
    return tuple(
        version for version in known_versions() if agrees(log, model, replace(settings, version=version, assume=None))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One start whose figures do not all match."""

    log: EngineLog
    model: ModelStates
    settings: VllmSettings
    given: Given

    def reason(self) -> str:
        """Other rules or settings that give every figure, in words; empty when none do."""
        versions = agreeing_versions(self.log, self.model, self.settings)
        if versions:
            return f"the rules of {' and '.join(versions)} give every figure: likeliest the build has those"
        for words, settings in self._unsaid():
            if agrees(self.log, self.model, settings):
                return f"{words} gives every figure, and the log does not say"
        for words, settings in self._unsaid():
            versions = agreeing_versions(self.log, self.model, settings)
            if versions:
                return f"{words} and the rules of {' and '.join(versions)} give every figure"
        return ""

    def _unsaid(self) -> Iterator[tuple[str, VllmSettings]]:
        """Settings that stand at a default, at another value."""
        if self.given.capability is None:
            for capability in CAPABILITIES:
                if capability != self.settings.capability:
                    yield f"compute capability {capability}", replace(self.settings, capability=capability)
        if self.given.prefix_caching is None and self.log.prefix_caching is None:
            flipped = not self.settings.prefix_caching
            yield f"prefix caching {'on' if flipped else 'off'}", replace(self.settings, prefix_caching=flipped)


def with_reasons(
    figures: tuple[Figure, ...], *, log: EngineLog, plan: CachePlan, pool: Pool | None, search: Callable[[], str]
) -> tuple[Figure, ...]:
    """`figures`, each that does not match with its likeliest reason."""
    if not any(figure.matches is False for figure in figures):
        return figures
    found = search()
    structure = any(figure.matches is False for figure in figures if figure.name in _STRUCTURE)
    said = found or (FORK if structure else _of_memory(log, plan, pool))
    return tuple(replace(figure, reason=said) if figure.matches is False else figure for figure in figures)


_STRUCTURE = frozenset({"block_tokens", "padding_percent", "padding_layers", "needed_gib"})
"""Figures that do not depend on the memory."""


def _of_memory(log: EngineLog, plan: CachePlan, pool: Pool | None) -> str:
    """Why the logged capacity is not what the printed memory gives."""
    if pool is None or pool.from_memory is None or pool.from_figures is None or pool.from_figures.is_empty:
        return FORK
    counts, least = pool.from_figures, pool.from_memory.low
    size = f"{counts.low:,} blocks, {gib_of(counts.low * plan.bytes_per_block)} GiB"
    if counts.high >= least:
        return f"it takes {size}, more than the printed memory; likeliest a fork's own rule, or lines of another start"
    if len(log.memories) < log.ranks:
        return (
            f"it takes {size}; the pool is made of the smallest memory over {log.ranks} ranks, and likeliest "
            "the rank that has it is not in this log"
        )
    return f"it takes {size}, less than every printed memory; likeliest a block override, or a fork's own rule"
