from __future__ import annotations

import gc
import json
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelbones.checkpoint.census import ShardFile
from modelbones.checkpoint.directory import read_checkpoint
from modelbones.checkpoint.index import parse_index
from modelbones.checkpoint.index_text import is_candidate, proven_metadata
from modelbones.errors import SourceError
from tests.checkpoint.writing import write_shards

INDEX = "model.safetensors.index.json"
TOP = {"metadata": {"total_size": 6}, "weight_map": {"b": "1.safetensors", "a": "2.safetensors", "c": "2.safetensors"}}
SORTED = json.dumps(TOP, indent=2, sort_keys=True)


def file(name: str, names: tuple[str, ...]) -> ShardFile:
    return ShardFile(name=name, header_bytes=0, file_bytes=0, data_bytes=0, names=names, starts=array("Q"), metadata={})


FILES = (file("1.safetensors", ("b",)), file("2.safetensors", ("a", "c")))


@pytest.mark.parametrize("text", [SORTED, SORTED + "\n", json.dumps(TOP, indent=2)])
def test_an_index_as_writers_write_it_is_proven_without_parsing_it(text: str) -> None:
    assert is_candidate(text.encode())
    assert proven_metadata(text.encode(), FILES) == {"total_size": 6}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"a": "2.', '"a": "1.'),
        ('"c": "2.safetensors"', '"d": "2.safetensors"'),
        ('    "c"', '    "c": "2.safetensors",\n    "c"'),
        ('"total_size": 6', '"total_size": 6,\n    "total_size": 6'),
        ('"total_size": 6', '"total_size": 6.00'),
        ("\n}", "\n} {}"),
    ],
)
def test_an_index_that_differs_in_one_place_is_not_proven(old: str, new: str) -> None:
    assert old in SORTED
    assert proven_metadata(SORTED.replace(old, new).encode(), FILES) is None


def test_an_index_of_other_files_is_not_proven() -> None:
    assert proven_metadata(SORTED.encode(), FILES[:1]) is None
    assert proven_metadata(SORTED.encode(), ()) is None


@settings(max_examples=500)
@given(st.integers(0, len(SORTED) - 1), st.sampled_from(['"', ",", ":", "a", " ", "\n", "1", "{", "}", ""]))
def test_a_proven_index_parses_to_what_was_proven(at: int, character: str) -> None:
    raw = (SORTED[:at] + character + SORTED[at + 1 :]).encode()
    if is_candidate(raw) and (metadata := proven_metadata(raw, FILES)) is not None:
        assert parse_index(raw, place="i").weight_map == TOP["weight_map"]
        assert json.loads(raw).get("metadata", {}) == metadata


@pytest.mark.parametrize("text", [SORTED, json.dumps(TOP, indent=2), json.dumps(TOP), json.dumps(TOP, indent=4)])
def test_a_sound_checkpoint_has_no_findings_however_its_index_is_written(text: str, tmp_path: Path) -> None:
    write_shards(tmp_path, {"1.safetensors": {"b": 1}, "2.safetensors": {"a": 2, "c": 3}})
    (tmp_path / INDEX).write_text(text)
    census = read_checkpoint(tmp_path)
    assert census.findings == ()
    assert census.has_index
    assert list(census.tensors) == ["b", "a", "c"]


def test_a_key_twice_is_refused_in_an_index_as_writers_write_it(tmp_path: Path) -> None:
    write_shards(tmp_path, {"1.safetensors": {"b": 1}, "2.safetensors": {"a": 2, "c": 3}})
    (tmp_path / INDEX).write_text(SORTED.replace('    "b"', '    "b": "1.safetensors",\n    "b"'))
    assert [finding.message for finding in read_checkpoint(tmp_path).findings] == [
        f'{INDEX}: 1 key more than once in "weight_map": "b"; expected each once; write or download the index again'
    ]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_collection_is_as_it_was_after_reading(is_enabled: bool, tmp_path: Path) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        with pytest.raises(SourceError):
            read_checkpoint(tmp_path)
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
