from __future__ import annotations

import pytest

from modelbones.live import Glm5NextDsaState
from tests.live.devices import SMALL, Device, device_of, poison


@pytest.fixture(params=["numpy", pytest.param("torch", marks=pytest.mark.oracle)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each backend in turn, fresh."""
    return device_of(request.param)


@pytest.fixture
def state(device: Device) -> Glm5NextDsaState:
    """An empty cache of 16 rows, every one of them NaN."""
    made = Glm5NextDsaState.alloc(device.backend, SMALL)
    poison(device, made)
    return made
