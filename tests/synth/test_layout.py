"""How tensors are cut into files."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.dtypes import DType
from modelbones.synth.layout import MOST_SHARD_BYTES, Tensor, shards


def vectors(sizes: list[int]) -> list[Tensor]:
    return [Tensor(f"t{number}", DType.U8, (size,)) for number, size in enumerate(sizes)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 60))
def test_every_tensor_is_in_one_file_in_order_and_no_file_is_empty(sizes: list[int], count: int) -> None:
    listed = vectors(sizes)
    files = shards(listed, count)
    assert len(files) == min(count, len(listed))
    assert all(files)
    assert [tensor for file in files for tensor in file] == listed


@given(st.lists(st.integers(1, 50), min_size=2, max_size=60), st.integers(2, 6))
def test_no_file_is_larger_than_its_share_and_one_tensor(sizes: list[int], count: int) -> None:
    files = shards(vectors(sizes), count)
    share = sum(sizes) / len(files)
    longest_tail = max(sizes)
    assert all(sum(tensor.nbytes for tensor in file) <= share + longest_tail for file in files)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 11, 1_000])
def test_more_files_than_tensors_are_as_many_as_there_are_tensors(count: int) -> None:
    files = shards(vectors([5] * 10), count)
    assert [len(file) for file in files] == {
        1: [10],
        2: [5, 5],
        3: [4, 3, 3],
        7: [2, 1, 2, 1, 2, 1, 1],
    }.get(count, [1] * 10)


def test_the_number_of_files_follows_from_the_size_when_it_is_not_given() -> None:
    assert MOST_SHARD_BYTES == 5 * 1024**3
    for total, files in ((1, 1), (MOST_SHARD_BYTES, 1), (MOST_SHARD_BYTES + 1, 2), (7 * MOST_SHARD_BYTES, 7)):
        listed = vectors([total // 50] * 49 + [total - 49 * (total // 50)])
        assert len(shards(listed, None)) == files


def test_tensors_without_bytes_still_go_to_every_file() -> None:
    assert [len(file) for file in shards(vectors([0] * 6), 3)] == [1, 1, 4]


def test_many_files_take_time_in_proportion() -> None:
    """Bug: the files that were filled were counted again for each tensor."""
    listed = vectors([1] * 100_000)
    began = time.perf_counter()
    files = shards(listed, 20_000)
    assert time.perf_counter() - began < 5
    assert {len(file) for file in files} == {5}
