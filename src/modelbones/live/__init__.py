"""Live per-sequence state: what a server really allocates, with a cursor that cannot pass its end.

`import modelbones.live` loads neither numpy nor torch; a backend loads its own when it is
first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Backend": "backend",
    "DsaSelectGeometry": "select",
    "Glm5NextDsaConfig": "dsa_config",
    "Glm5NextDsaState": "state",
    "Handle": "backend",
    "NumpyBackend": "on_numpy",
    "Rows": "rows",
    "TorchBackend": "on_torch",
}

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'modelbones.live' has no attribute {name!r}")
    value = getattr(import_module(f"modelbones.live.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from modelbones.live.backend import Backend as Backend
    from modelbones.live.backend import Handle as Handle
    from modelbones.live.dsa_config import Glm5NextDsaConfig as Glm5NextDsaConfig
    from modelbones.live.on_numpy import NumpyBackend as NumpyBackend
    from modelbones.live.on_torch import TorchBackend as TorchBackend
    from modelbones.live.rows import Rows as Rows
    from modelbones.live.select import DsaSelectGeometry as DsaSelectGeometry
    from modelbones.live.state import Glm5NextDsaState as Glm5NextDsaState
