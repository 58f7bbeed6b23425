"""What a state takes and gives back, its owner and its views."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from modelbones.errors import CacheFullError, ConfigError, HandleError
from modelbones.live import Glm5NextDsaState, NumpyBackend
from modelbones.live.backend import Handle
from tests.live.devices import (
    SMALL,
    SMALL_BYTES,
    Device,
    arrays,
    handles,
    joined,
    random_rows,
    raw,
)

ROWS = random_rows(Random(4), 16)


def test_alloc_takes_three_buffers_of_exact_sizes(device: Device, state: Glm5NextDsaState) -> None:
    assert [handle.nbytes for handle in handles(state)] == [16 * 6, 16 * 6, 16]
    assert (device.backend.live_allocs(), device.backend.live_bytes()) == (3, SMALL_BYTES)
    assert (state.len(), state.is_empty(), state.capacity(), state.index_head_dim()) == (0, True, 16, 3)


def test_alloc_refuses_a_config_that_does_not_validate(device: Device) -> None:
    with pytest.raises(ConfigError):
        Glm5NextDsaState.alloc(device.backend, replace(SMALL, index_topk=9))
    assert device.backend.live_allocs() == 0


def test_a_context_shorter_than_a_pool_reserves_nothing(device: Device) -> None:
    state = Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=3))
    assert (device.backend.live_allocs(), device.backend.live_bytes(), state.capacity()) == (3, 0, 0)
    with pytest.raises(CacheFullError, match="row 1 is past its 0 reserved rows"):
        state.append(device.backend, *arrays(device, ROWS[:1]))
    state.free(device.backend)


class Flaky(NumpyBackend):
    """A backend whose n-th alloc, or n-th free, fails."""

    def __init__(self, *, alloc: int = 0, frees: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.failing_alloc, self.failing_frees = alloc, frees
        self.allocs = self.frees = 0

    def alloc(self, nbytes: int) -> Handle:
        self.allocs += 1
        if self.allocs == self.failing_alloc:
            raise KeyboardInterrupt
        return super().alloc(nbytes)

    def free(self, handle: Handle) -> None:
        self.frees += 1
        if self.frees in self.failing_frees:
            raise OSError(f"free {self.frees}")
        super().free(handle)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_alloc_that_fails_half_way_frees_what_it_took(failing: int) -> None:
    backend = Flaky(alloc=failing)
    with pytest.raises(KeyboardInterrupt):
        Glm5NextDsaState.alloc(backend, SMALL)
    assert (backend.live_allocs(), backend.live_bytes()) == (0, 0)


def test_an_alloc_that_fails_half_way_frees_all_it_can_and_says_what_it_could_not() -> None:
    backend = Flaky(alloc=3, frees=frozenset({1}))
    with pytest.raises(KeyboardInterrupt) as failed:
        Glm5NextDsaState.alloc(backend, SMALL)
    assert failed.value.__notes__ == ["a buffer taken before could not be freed: free 1"]
    assert (backend.frees, backend.live_allocs()) == (2, 1)


def test_free_gives_back_once_and_lets_go(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS))
    for _ in range(3):
        state.free(device.backend)
        assert (state.k_normed, state.gate, state.valid, state.len()) == (None, None, None, 0)
        assert (device.backend.live_allocs(), device.backend.live_bytes()) == (0, 0)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_free_that_fails_half_way_loses_nothing_and_frees_nothing_twice(failing: int) -> None:
    backend = Flaky(frees=frozenset({failing}))
    state = Glm5NextDsaState.alloc(backend, SMALL)
    state.advance(5)
    with pytest.raises(OSError, match=f"free {failing}"):
        state.free(backend)
    assert (backend.live_allocs(), state.len()) == (1, 0)
    with pytest.raises(HandleError, match="this state was freed"):
        state.advance(1)
    state.free(backend)
    assert (backend.frees, backend.live_allocs()) == (4, 0)
    state.free(backend)
    assert backend.frees == 4


def test_a_free_on_another_backend_changes_nothing(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:5]))
    with pytest.raises(HandleError, match="a handle of another backend"):
        state.free(NumpyBackend())
    assert raw(device, state.rows(device.backend, 0, 5)) == joined(ROWS[:5])
    state.free(device.backend)
    assert device.backend.live_bytes() == 0


# Views over buffers that someone else frees.


def test_a_view_reads_the_owners_rows_and_never_frees_them(device: Device, state: Glm5NextDsaState) -> None:
    state.append(device.backend, *arrays(device, ROWS[:5]))
    view = Glm5NextDsaState.borrowed(SMALL, *handles(state), length=4)
    assert raw(device, view.rows(device.backend, 0, 4)) == joined(ROWS[:4])
    assert (view.capacity(), view.index_head_dim(), view.len(), state.len()) == (16, 3, 4, 5)
    view.free(device.backend)
    assert (view.k_normed, view.len(), device.backend.live_allocs()) == (None, 0, 3)
    with pytest.raises(HandleError, match="this state was freed"):
        view.rows(device.backend, 0, 0)
    assert raw(device, state.rows(device.backend, 0, 5)) == joined(ROWS[:5])


def test_a_view_is_dead_once_its_owner_is_freed(device: Device, state: Glm5NextDsaState) -> None:
    view = Glm5NextDsaState.borrowed(SMALL, *handles(state))
    state.free(device.backend)
    with pytest.raises(HandleError, match="was freed already"):
        view.append(device.backend, *arrays(device, ROWS[:1]))
    with pytest.raises(HandleError, match="was freed already"):
        view.snapshot_blob(device.backend)
    assert view.len() == 0
    view.free(device.backend)


def test_owners_and_views_may_be_freed_in_any_order(device: Device) -> None:
    random = Random(9)
    for _ in range(20):
        owners = [Glm5NextDsaState.alloc(device.backend, SMALL) for _ in range(4)]
        views = [Glm5NextDsaState.borrowed(SMALL, *handles(owner)) for owner in owners for _ in range(2)]
        everyone = [*owners, *views, *owners]
        random.shuffle(everyone)
        left = set(map(id, owners))
        for state in everyone:
            state.free(device.backend)
            left.discard(id(state))
            assert device.backend.live_bytes() == len(left) * SMALL_BYTES


def test_a_view_of_what_is_no_live_buffer_is_refused(device: Device, state: Glm5NextDsaState) -> None:
    k_normed, gate, valid = handles(state)
    with pytest.raises(HandleError) as refused:
        Glm5NextDsaState.borrowed(SMALL, k_normed, None, valid)
    assert str(refused.value) == "indexer.gate: no handle; expected at least 96 bytes; borrow from a live owner"
    with pytest.raises(HandleError) as refused:
        Glm5NextDsaState.borrowed(SMALL, k_normed, gate, device.backend.alloc(15))
    assert str(refused.value) == (
        "indexer.valid: a handle of 15 bytes; expected at least 16 bytes; borrow from a live owner"
    )
    with pytest.raises(CacheFullError):
        Glm5NextDsaState.borrowed(SMALL, k_normed, gate, valid, length=17)
    with pytest.raises(ConfigError):
        Glm5NextDsaState.borrowed(replace(SMALL, index_topk=9), k_normed, gate, valid)
