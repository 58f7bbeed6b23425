"""What only the torch backend can meet."""

from __future__ import annotations

import warnings

import pytest

from modelbones.errors import BadRowsError, UsageError
from modelbones.live import Glm5NextDsaState
from tests.live.devices import SMALL, Device, arrays, device_of, joined, random_rows, raw

pytestmark = pytest.mark.oracle


@pytest.fixture
def on_torch() -> Device:
    return device_of("torch")


def test_a_cache_made_in_inference_mode_is_written_outside_of_it(on_torch: Device) -> None:
    from random import Random

    import torch

    rows = random_rows(Random(1), 3)
    with torch.inference_mode():
        state = Glm5NextDsaState.alloc(on_torch.backend, SMALL)
        inside = arrays(on_torch, rows)
    state.append(on_torch.backend, *inside)
    with torch.inference_mode():
        state.append(on_torch.backend, *arrays(on_torch, rows))
    assert raw(on_torch, state.rows(on_torch.backend, 0, 6)) == joined(rows + rows)


def test_no_gradient_follows_rows_into_the_cache(on_torch: Device) -> None:
    import torch

    state = Glm5NextDsaState.alloc(on_torch.backend, SMALL)
    keys = torch.ones(1, 3, dtype=torch.bfloat16, requires_grad=True)
    state.append(on_torch.backend, keys, keys * 2, torch.ones(1, dtype=torch.uint8))
    read = state.rows(on_torch.backend, 0, 1)
    assert not read.gate.requires_grad
    assert read.gate.tolist() == [[2.0, 2.0, 2.0]]


def test_rows_that_are_not_contiguous_are_copied_as_they_look(on_torch: Device) -> None:
    import torch

    state = Glm5NextDsaState.alloc(on_torch.backend, SMALL)
    keys = torch.arange(6, dtype=torch.bfloat16).reshape(3, 2).T
    state.append(on_torch.backend, keys, torch.ones(1, 1, dtype=torch.bfloat16).expand(2, 3), torch.ones(2).byte())
    assert state.rows(on_torch.backend, 0, 2).k_normed.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_a_tensor_without_data_is_refused(on_torch: Device) -> None:
    import torch

    state = Glm5NextDsaState.alloc(on_torch.backend, SMALL)
    good = torch.ones(1, 3, dtype=torch.bfloat16)
    valid = torch.ones(1, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([good])
    for bad in (good.to("meta"), good.to_sparse(), nested):
        with pytest.raises(BadRowsError, match="a tensor without plain data"):
            state.append(on_torch.backend, bad, good, valid)
    assert state.is_empty()


@pytest.mark.parametrize("name", ["meta", "nowhere", "cpu:x"])
def test_a_device_that_holds_no_data_is_refused(on_torch: Device, name: str) -> None:
    from modelbones.live import TorchBackend

    with pytest.raises(UsageError) as refused:
        TorchBackend(name)
    assert str(refused.value) == (
        f"TorchBackend: found device '{name}'; expected one this torch holds data on; name it"
    )
