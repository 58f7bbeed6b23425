"""modelbones: what a language model is made of, whether a checkpoint is it, what a sequence costs.

Everything here is imported when it is first asked for, so that `import modelbones`
costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "read_config": "families.registry",
    "build": "families.registry",
    "Glm5NextTextSkeleton": "families.glm5_next",
    "Glm5NextConfig": "families.glm5_next",
    "Skeleton": "skeleton",
    "SkeletonLayer": "skeleton",
    "Mixer": "skeleton",
    "Mlp": "skeleton",
    "Site": "skeleton",
    "Step": "skeleton",
    "Final": "skeleton",
    "ResidualStep": "skeleton",
    "FinalStep": "skeleton",
    "StateKind": "parts.part",
    "StateBudget": "budget",
    "StructuralAccounting": "contract",
    "PerSequenceState": "reserve",
    "per_sequence_state_bytes": "reserve",
    "dsa_capacity": "parts.indexer",
    "max_dsa_context": "parts.indexer",
    "indexer_state_bytes": "parts.indexer",
    "ModelbonesError": "errors",
    "UsageError": "errors",
    "SourceError": "errors",
    "ConfigError": "errors",
    "UnknownArchitectureError": "errors",
    "UnknownSchemeError": "errors",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'modelbones' has no attribute {name!r}")
    value = getattr(import_module(f"modelbones.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from modelbones.budget import StateBudget as StateBudget
    from modelbones.contract import StructuralAccounting as StructuralAccounting
    from modelbones.errors import ConfigError as ConfigError
    from modelbones.errors import ModelbonesError as ModelbonesError
    from modelbones.errors import SourceError as SourceError
    from modelbones.errors import UnknownArchitectureError as UnknownArchitectureError
    from modelbones.errors import UnknownSchemeError as UnknownSchemeError
    from modelbones.errors import UsageError as UsageError
    from modelbones.families.glm5_next import Glm5NextConfig as Glm5NextConfig
    from modelbones.families.glm5_next import Glm5NextTextSkeleton as Glm5NextTextSkeleton
    from modelbones.families.registry import build as build
    from modelbones.families.registry import read_config as read_config
    from modelbones.parts.indexer import dsa_capacity as dsa_capacity
    from modelbones.parts.indexer import indexer_state_bytes as indexer_state_bytes
    from modelbones.parts.indexer import max_dsa_context as max_dsa_context
    from modelbones.parts.part import StateKind as StateKind
    from modelbones.reserve import PerSequenceState as PerSequenceState
    from modelbones.reserve import per_sequence_state_bytes as per_sequence_state_bytes
    from modelbones.skeleton import Final as Final
    from modelbones.skeleton import FinalStep as FinalStep
    from modelbones.skeleton import Mixer as Mixer
    from modelbones.skeleton import Mlp as Mlp
    from modelbones.skeleton import ResidualStep as ResidualStep
    from modelbones.skeleton import Site as Site
    from modelbones.skeleton import Skeleton as Skeleton
    from modelbones.skeleton import SkeletonLayer as SkeletonLayer
    from modelbones.skeleton import Step as Step
