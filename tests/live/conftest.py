from __future__ import annotations

import pytest

from tests.live.devices import Device, device_of


@pytest.fixture(params=["numpy", pytest.param("torch", marks=pytest.mark.oracle)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each backend in turn, fresh."""
    return device_of(request.param)
