"""The cache's bytes are the reserve's and the budget's, since all three fold the same buffers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from modelbones import build, per_sequence_state_bytes, read_config
from modelbones.live import Glm5NextDsaState, NumpyBackend
from modelbones.parts.indexer import indexer_state_bytes, max_dsa_context
from tests import published
from tests.live.devices import PRESET, Device


def test_131072_tokens_in_11_layers_are_739639296_live_bytes_in_33_allocations() -> None:
    backend = NumpyBackend()
    cfg = replace(PRESET, max_context=131_072)
    layers = [Glm5NextDsaState.alloc(backend, cfg) for _ in range(11)]
    assert backend.live_bytes() == 739_639_296 == 11 * 131_072 * 513
    assert backend.live_allocs() == 33
    for layer in layers:
        layer.free(backend)
    assert (backend.live_bytes(), backend.live_allocs()) == (0, 0)


def test_a_hundred_cycles_leave_nothing(device: Device) -> None:
    for _ in range(100):
        state = Glm5NextDsaState.alloc(device.backend, PRESET)
        assert device.backend.live_bytes() == 8_404_992
        state.free(device.backend)
        assert (device.backend.live_bytes(), device.backend.live_allocs()) == (0, 0)


@pytest.mark.parametrize("context", [0, 1, 3, 4, 4_096, 4_097, 4_099, 16_384, 16_386])
def test_the_cache_of_11_layers_is_the_reserve_to_the_byte(context: int) -> None:
    backend = NumpyBackend()
    cfg = replace(PRESET, max_context=context)
    layers = [Glm5NextDsaState.alloc(backend, cfg) for _ in range(11)]
    reserve = per_sequence_state_bytes(published.nested(), context, spec_on=False).target_layers
    assert backend.live_bytes() == reserve == 11 * indexer_state_bytes(max_dsa_context(cfg), 128)
    for layer in layers:
        layer.free(backend)


@pytest.mark.parametrize(
    ("context", "cache", "budget"), [(4_096, 23_113_728, 23_113_728), (4_099, 23_113_728, 23_130_657)]
)
def test_between_pools_the_cache_holds_whole_pools_and_the_budget_counts_tokens(
    context: int, cache: int, budget: int
) -> None:
    """5,643 bytes a token: 3 tokens of a partial pool are 16,929 bytes that are never reserved."""
    terms = build(read_config("glm-5.3-flash")).budget().terms
    counted = sum(term.nbytes(tokens=context) for term in terms if term.name == "dsa_indexer")
    reserve = per_sequence_state_bytes(published.nested(), context, spec_on=False).target_layers
    assert (reserve, counted) == (cache, budget)


def test_importing_the_package_loads_neither_numpy_nor_torch() -> None:
    program = (
        "import sys, modelbones.live as live\n"
        "live.Glm5NextDsaState, live.Glm5NextDsaConfig, live.DsaSelectGeometry, live.Backend, live.Handle\n"
        "assert not {'numpy', 'torch', 'ml_dtypes'} & set(sys.modules)\n"
        "live.NumpyBackend()\n"
        "assert 'numpy' in sys.modules and 'torch' not in sys.modules\n"
        "assert set(live.__all__) <= set(dir(live))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("NumpyBackend", "numpy", "state"), ("NumpyBackend", "ml_dtypes", "state"), ("TorchBackend", "torch", "torch")],
)
def test_a_missing_extra_is_named(name: str, module: str, extra: str) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{module!r}] = None\n"
        "from modelbones.errors import ExtraMissingError\n"
        "from modelbones.live import Glm5NextDsaState\n"
        "try:\n"
        f"    from modelbones.live import {name}\n"
        "except ExtraMissingError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == (
        f"{name}: {module} is not installed; expected the extra `{extra}`; pip install 'modelbones[{extra}]'\n"
    )


def test_a_name_the_package_does_not_have_is_an_attribute_error() -> None:
    import modelbones.live

    with pytest.raises(AttributeError, match=r"module 'modelbones\.live' has no attribute 'Glm5State'"):
        _ = modelbones.live.Glm5State
