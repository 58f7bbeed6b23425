"""The cache on a GPU, where there is one."""

from __future__ import annotations

from random import Random

import pytest

from modelbones.errors import BadRowsError
from modelbones.live import Glm5NextDsaState
from tests.live.devices import PRESET, SMALL, TorchDevice, arrays, image, joined, poison, random_rows, raw

pytestmark = pytest.mark.cuda


@pytest.fixture
def gpu() -> TorchDevice:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip(f"torch {torch.__version__} sees no CUDA device")
    return TorchDevice("cuda")


def test_rows_come_back_from_a_gpu_bit_for_bit(gpu: TorchDevice) -> None:
    state = Glm5NextDsaState.alloc(gpu.backend, SMALL)
    poison(gpu, state)
    rows = random_rows(Random(4), 13)
    state.append(gpu.backend, *arrays(gpu, rows))
    assert gpu.backend.device.index is not None
    assert state.rows(gpu.backend, 0, 1).k_normed.is_cuda
    assert raw(gpu, state.rows(gpu.backend, 0, 13)) == joined(rows)
    blob = state.snapshot_blob(gpu.backend)
    state.rewind_to(2)
    state.restore_blob(blob, gpu.backend)
    assert raw(gpu, state.rows(gpu.backend, 0, 13)) == joined(rows)
    state.free(gpu.backend)
    assert gpu.backend.live_bytes() == 0


def test_host_rows_are_taken_and_bad_ones_change_nothing_on_a_gpu(gpu: TorchDevice) -> None:
    host = TorchDevice("cpu")
    state = Glm5NextDsaState.alloc(gpu.backend, SMALL)
    poison(gpu, state)
    rows = random_rows(Random(5), 3)
    state.append(gpu.backend, *arrays(host, rows))
    before = image(gpu, state)
    bad = arrays(gpu, rows)
    bad.gate[2, 2] = float("nan")
    with pytest.raises(BadRowsError, match=r"indexer\.gate: found a NaN"):
        state.append(gpu.backend, *bad)
    assert image(gpu, state) == before
    state.free(gpu.backend)


def test_a_gpu_gives_the_preset_its_8404992_bytes_a_layer(gpu: TorchDevice) -> None:
    import torch

    before = torch.cuda.memory_allocated(gpu.backend.device)
    state = Glm5NextDsaState.alloc(gpu.backend, PRESET)
    assert gpu.backend.live_bytes() == 8_404_992
    assert torch.cuda.memory_allocated(gpu.backend.device) - before >= 8_404_992
    state.free(gpu.backend)
    assert torch.cuda.memory_allocated(gpu.backend.device) == before
