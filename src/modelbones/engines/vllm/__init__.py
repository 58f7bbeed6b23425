"""vLLM: which blocks it makes of a model's state and its memory, by version.

`plan_cache(skeleton, VllmSettings(version="0.31", max_model_len=131072), memory=...)` gives
a `CachePlan`: block size, padding, groups, bytes and count of blocks, both logged figures,
and how many sequences and how long a context fit. The rules are in `versions`, what a
device's backends choose in `layouts`; nothing here runs or imports the engine.
"""

from modelbones.engines.vllm.groups import Group, PaddingLayers, Pages
from modelbones.engines.vllm.mapping import drafter_states, plan_cache, states_of
from modelbones.engines.vllm.plan import CachePlan, TooSmall, plan_states
from modelbones.engines.vllm.refusals import EngineRefusedError, UnknownVersionError
from modelbones.engines.vllm.settings import KvDtype, SpecMethod, VllmSettings
from modelbones.engines.vllm.states import Kind, LayerState, Mechanism, ModelStates
from modelbones.engines.vllm.versions import LogFormula, Rules, known_versions, rules_of

__all__ = [
    "CachePlan",
    "EngineRefusedError",
    "Group",
    "Kind",
    "KvDtype",
    "LayerState",
    "LogFormula",
    "Mechanism",
    "ModelStates",
    "PaddingLayers",
    "Pages",
    "Rules",
    "SpecMethod",
    "TooSmall",
    "UnknownVersionError",
    "VllmSettings",
    "drafter_states",
    "known_versions",
    "plan_cache",
    "plan_states",
    "rules_of",
    "states_of",
]
