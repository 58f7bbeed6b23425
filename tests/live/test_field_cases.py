"""What went wrong in the field, as far as this cache goes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from modelbones.errors import RowsMissingError
from modelbones.live import Glm5NextDsaState
from tests.live.devices import SMALL, Device, arrays, joined, poison, random_rows, raw

ROWS = random_rows(Random(21), 16)


def test_c01_a_pool_is_stale_after_a_rewind_into_it(device: Device) -> None:
    """Pooled keys survived a rewind and were reused (Blaizzy/mlx-vlm#2086).

    Rows are kept raw here, never pooled: pool 2 is rows 8 to 11, and once the cursor came back
    to 9 only row 8 of it is left, so the pool is not among those a query may select.
    """
    state = Glm5NextDsaState.alloc(device.backend, SMALL)
    state.append(device.backend, *arrays(device, ROWS[:12]))
    assert state.geometry(SMALL, 1).n_pools == 3
    state.rewind_to(9)
    poison(device, state)
    after_rewind = state.geometry(SMALL, 1)
    assert (after_rewind.n_pools, after_rewind.tail_start) == (2, 8)
    state.append(device.backend, *arrays(device, ROWS[15:16]))
    plan = state.geometry(SMALL, 1)
    assert (state.len(), plan.n_pools, plan.tail_rows, plan.tail_start) == (10, 2, 2, 8)
    assert raw(device, state.rows(device.backend, plan.tail_start, 10)) == joined([ROWS[8], ROWS[15]])


def test_c07_a_draft_cache_ahead_of_the_sequence_is_rewound(device: Device) -> None:
    """Prompt reuse restarted at 39 while the draft cache ended at 77,430 (llama-cpp-turboquant#306)."""
    state = Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=77_432))
    state.advance(77_431)
    state.sync_to(39, 1)
    assert state.len() == 40


def test_c07_a_draft_cache_behind_the_sequence_is_an_error(device: Device) -> None:
    state = Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=64))
    state.advance(30)
    with pytest.raises(RowsMissingError, match="so 9 rows are MISSING") as refused:
        state.sync_to(39, 1)
    assert (refused.value.missing, state.len()) == (9, 30)


def test_c09_padded_rows_move_only_the_scratch_state(device: Device) -> None:
    """Warm-up and padded replay rows advanced live requests (inclusionAI/AReno#509).

    Four captured rows serve two live sequences: the two padded ones write to a state of their
    own, so N live sequences take N + 1 allocations, and only the reconciled amount moves.
    """
    scratch, first, second = (Glm5NextDsaState.alloc(device.backend, replace(SMALL, max_context=32)) for _ in range(3))
    assert device.backend.live_allocs() == (2 + 1) * 3
    first.advance(10)
    second.advance(20)

    def step(batch: list[Glm5NextDsaState]) -> None:
        for state in batch:
            state.append(device.backend, *arrays(device, ROWS[:1]))
        scratch.rewind_to(0)

    for _warm_up in range(2):
        step([scratch] * 4)
    assert (first.len(), second.len()) == (10, 20)
    # The replayed graph wrote rows 10 and 20; the host learns of it afterwards.
    first.sync_to(10, 1)
    second.sync_to(20, 1)
    assert (scratch.len(), first.len(), second.len()) == (0, 11, 21)
    # A sequence that took no part in the replay does not move either.
    first.sync_to(11, 0)
    assert first.len() == 11
