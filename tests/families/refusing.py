"""What a config's reading says is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from modelbones.errors import ConfigError
from modelbones.families.registry import read_config


def faults(config: dict[str, Any]) -> list[str]:
    """Every fault of `config`, as it is printed."""
    with pytest.raises(ConfigError) as error:
        read_config(config)
    return [str(fault) for fault in error.value.faults]
