"""`explain`: every figure of a vLLM start recomputed, and what its requests hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelbones.engines.vllm import (
    CachePlan,
    EngineRefusedError,
    ModelStates,
    VllmSettings,
    known_versions,
    states_of,
)
from modelbones.errors import UsageError
from modelbones.explain.figures import Figure, compare
from modelbones.explain.held import Held, held_by
from modelbones.explain.log import EngineLog
from modelbones.explain.pool import Pool, pool_of
from modelbones.explain.reasons import Search, agreeing_versions, outline, with_reasons
from modelbones.explain.start import Given, Start, start_of
from modelbones.skeleton import Skeleton

NOT_GIVEN = "not recomputed: something is needed first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a log says.

    Attributes:
        log: What was read.
        settings: The start everything is recomputed for; None when something is needed.
        figures: Each printed figure, in the engine's order.
        held: What requests hold; None when nothing could be recomputed.
        pool: The block count, where the log tells it; None elsewhere.
        needed: What the log does not say and was not given, each with the flag that gives it.
        assumed: What stands at a default because neither says.
        refused: Why the start could not be recomputed; empty when it was.
    """

    log: EngineLog
    settings: VllmSettings | None
    figures: tuple[Figure, ...]
    held: Held | None
    pool: Pool | None
    needed: tuple[str, ...]
    assumed: tuple[str, ...]
    refused: str = ""

    @property
    def agrees(self) -> bool:
        """Whether no figure differs."""
        return all(figure.matches is not False for figure in self.figures)


def explain(log: EngineLog, model: Skeleton | ModelStates | None = None, given: Given | None = None) -> Explanation:
    """Every figure of `log`, recomputed where `model`, the log and `given` say enough."""
    said = given or Given()
    try:
        states = states_of(model) if isinstance(model, Skeleton) else model
        start = start_of(log, said, states)
    except (EngineRefusedError, UsageError) as error:
        return _without(log, Start(settings=None, needed=(), assumed=()), refused=str(error))
    if states is None:
        named = "the model" if log.model is None else f'a config for the model the log names "{log.model}"'
        return _without(log, replace(start, needed=(f"{named}: modelbones explain LOG MODEL", *start.needed)))
    if start.settings is None:
        return _without(log, replace(start, needed=_with_versions(start.needed, log, states, said)))
    try:
        plan = outline(states, start.settings)
    except (EngineRefusedError, UsageError) as error:
        return _without(log, start, refused=str(error))
    return _explained(log, plan, states, start, said)


def _explained(log: EngineLog, plan: CachePlan, model: ModelStates, start: Start, given: Given) -> Explanation:
    settings = start.settings
    assert settings is not None, "a plan was made of them"
    pool = pool_of(log, plan)
    search = Search(log=log, model=model, settings=settings, given=given)
    figures = compare(log, plan, pool)
    return Explanation(
        log=log,
        settings=settings,
        figures=with_reasons(figures, log=log, plan=plan, pool=pool, search=search.reason),
        held=held_by(plan, settings, pool),
        pool=pool,
        needed=(),
        assumed=start.assumed,
    )


def _without(log: EngineLog, start: Start, *, refused: str = "") -> Explanation:
    """The figures with their meaning alone."""
    reason = refused or NOT_GIVEN
    figures = tuple(replace(figure, reason=reason) for figure in compare(log, None, None))
    return Explanation(
        log=log,
        settings=start.settings,
        figures=figures,
        held=None,
        pool=None,
        needed=start.needed,
        assumed=start.assumed,
        refused=refused,
    )


def _with_versions(needed: tuple[str, ...], log: EngineLog, model: ModelStates, given: Given) -> tuple[str, ...]:
    """`needed`; where only the version's rules are, also the versions that give every figure."""
    if len(needed) != 1:
        return needed
    try:
        settings = start_of(log, replace(given, version=known_versions()[0], assume=None), model).settings
    except UsageError:
        return needed
    versions = () if settings is None else agreeing_versions(log, model, settings)
    if not versions:
        return needed
    return (f"{needed[0]} (every figure matches the rules of {', '.join(versions)})",)
