"""A log in plain words: what vLLM printed at its start, recomputed, and what it means.

`explain(read_log(lines), states_of(skeleton))` gives an `Explanation`: each figure with what
it comes to here, why one differs, what a request holds before its first token and how much
idle cache the pool really keeps. Nothing is invented: what the log does not say and was not
given is listed as needed.
"""

from modelbones.explain.explanation import Explanation, explain
from modelbones.explain.figures import Figure
from modelbones.explain.held import Held, HeldGroup
from modelbones.explain.log import EngineLog, Memory, PaddingLine, TooSmallLine
from modelbones.explain.parse import read_log
from modelbones.explain.pool import Basis, Pool, Span
from modelbones.explain.start import Given

__all__ = [
    "Basis",
    "EngineLog",
    "Explanation",
    "Figure",
    "Given",
    "Held",
    "HeldGroup",
    "Memory",
    "PaddingLine",
    "Pool",
    "Span",
    "TooSmallLine",
    "explain",
    "read_log",
]
