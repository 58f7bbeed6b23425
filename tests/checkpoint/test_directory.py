from __future__ import annotations

import os
from pathlib import Path

import pytest

from modelbones.checkpoint.census import Census, Span
from modelbones.checkpoint.directory import read_checkpoint
from modelbones.dtypes import DType
from modelbones.errors import SourceError
from modelbones.findings import Code, Severity
from tests.checkpoint.corpus_words import framed
from tests.checkpoint.writing import shard, write_index, write_shards

ONE, TWO, THREE = (f"m-0000{number}-of-00003.safetensors" for number in (1, 2, 3))
INDEX = "model.safetensors.index.json"
ABSENT = "weights that are not loaded stay as they were initialised"


def said(census: Census) -> list[tuple[str, str, str]]:
    """(severity, name, message) of each finding."""
    return [(finding.severity.value, finding.name, finding.message) for finding in census.findings]


def index_said(census: Census) -> list[tuple[str, str, str]]:
    assert {finding.code for finding in census.findings} == {Code.INDEX}
    return said(census)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three shards of one tensor each, and their index."""
    write_shards(tmp_path, {ONE: {"a": 2}, TWO: {"b": 3}, THREE: {"c": 4}})
    write_index(tmp_path, {"a": ONE, "b": TWO, "c": THREE}, total_size=9)
    return tmp_path


def test_a_sound_checkpoint_has_no_findings(three: Path) -> None:
    census = read_checkpoint(three)
    assert census.findings == ()
    assert census.has_index
    assert {name: (s.dtype, s.shape, s.nbytes) for name, s in census.tensors.items()} == {
        "a": (DType.U8, (2,), 2),
        "b": (DType.U8, (3,), 3),
        "c": (DType.U8, (4,), 4),
    }
    assert [(f.name, f.num_tensors, f.data_bytes) for f in census.files] == [(ONE, 1, 2), (TWO, 1, 3), (THREE, 1, 4)]
    # {"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}} is 53 bytes.
    assert [(f.header_bytes, f.file_bytes) for f in census.files] == [(53, 63), (53, 64), (53, 65)]
    assert census.payload_bytes == 9
    assert census.file_bytes == 192
    assert census.unread == {}
    assert census.files_of() == {"a": ONE, "b": TWO, "c": THREE}


def test_the_index_itself_may_be_named(three: Path) -> None:
    assert read_checkpoint(three / INDEX).findings == ()


def test_one_file_may_be_named_and_has_no_index(three: Path) -> None:
    census = read_checkpoint(three / TWO)
    assert list(census.tensors) == ["b"]
    assert not census.has_index
    assert census.findings == ()


def test_a_span_is_where_the_bytes_are_in_the_file(tmp_path: Path) -> None:
    write_shards(tmp_path, {"m.safetensors": {"a": 2, "b": 3}})
    raw = bytearray((tmp_path / "m.safetensors").read_bytes())
    raw[-3:] = b"bbb"
    (tmp_path / "m.safetensors").write_bytes(raw)
    span = read_checkpoint(tmp_path).span("b")
    assert span == Span("m.safetensors", len(raw) - 3, len(raw))
    assert raw[span.start : span.end] == b"bbb"
    with pytest.raises(KeyError):
        read_checkpoint(tmp_path).span("c")


def test_metadata_is_kept_by_file(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(shard({"a": 1}, metadata={"format": "pt"}))
    assert read_checkpoint(tmp_path).files[0].metadata == {"format": "pt"}


def test_a_shard_the_index_names_is_not_on_disk(three: Path) -> None:
    """sgl-project/sglang#32279: the loader starts with weights as they were initialised."""
    (three / TWO).unlink()
    census = read_checkpoint(three)
    assert index_said(census) == [
        (
            "error",
            TWO,
            f"{TWO}: not on disk; expected the file that holds 1 tensor of {INDEX}; "
            "download it, or name a file that exists",
        )
    ]
    assert census.findings[0].why == ABSENT
    assert census.unread == {"b": TWO}
    assert list(census.tensors) == ["a", "c"]


def test_the_file_set_comes_from_the_index_and_not_from_a_pattern(tmp_path: Path) -> None:
    """ggml-org/llama.cpp#16361: MTP tensors in mtp.safetensors were never opened."""
    write_shards(tmp_path, {"model-00092-of-00092.safetensors": {"a": 1}, "mtp.safetensors": {"b": 1}})
    write_index(tmp_path, {"a": "model-00092-of-00092.safetensors", "b": "mtp.safetensors"})
    census = read_checkpoint(tmp_path)
    assert [file.name for file in census.files] == ["model-00092-of-00092.safetensors", "mtp.safetensors"]
    assert census.findings == ()


def test_a_file_below_the_directory_may_be_named(tmp_path: Path) -> None:
    write_shards(tmp_path, {"parts/a.safetensors": {"a": 1}})
    write_index(tmp_path, {"a": "parts/a.safetensors"})
    assert read_checkpoint(tmp_path).findings == ()


def test_a_stray_file_is_a_warning_and_is_not_read(three: Path) -> None:
    write_shards(three, {"old.safetensors": {"x": 1}})
    census = read_checkpoint(three)
    assert index_said(census) == [
        (
            "warning",
            "old.safetensors",
            f"old.safetensors: on disk and not in {INDEX}; expected only files the index names; "
            "remove it, or write the index again from the files",
        )
    ]
    assert "x" not in census.tensors


def test_a_tensor_of_the_index_is_stored_nowhere(three: Path) -> None:
    write_index(three, {"a": ONE, "b": TWO, "c": THREE, "d": TWO})
    assert index_said(read_checkpoint(three)) == [
        (
            "error",
            "d",
            f'{INDEX}: 1 tensor said to be in "{TWO}" and stored nowhere: "d"; expected every tensor the index '
            "names; write the index again from the files, or write the missing tensors",
        )
    ]


def test_a_stored_tensor_is_not_in_the_index(three: Path) -> None:
    write_index(three, {"a": ONE, "c": THREE, "b": TWO})
    (three / TWO).write_bytes(shard({"b": 3, "d": 1, "e": 1}))
    census = read_checkpoint(three)
    assert index_said(census) == [
        (
            "error",
            TWO,
            f'{INDEX}: 2 tensors in "{TWO}" not in the index: "d", "e"; expected every stored tensor; '
            "write the index again from the files",
        )
    ]
    assert census.findings[0].detail == {"count": 2, "tensors": ["d", "e"], "file": TWO}


def test_a_tensor_is_in_another_file_than_the_index_says(three: Path) -> None:
    write_index(three, {"a": ONE, "b": ONE, "c": THREE, "b2": TWO})
    (three / TWO).write_bytes(shard({"b": 3, "b2": 1}))
    assert index_said(read_checkpoint(three)) == [
        (
            "error",
            "b",
            f'{INDEX}: 1 tensor said to be in "{ONE}" and stored in "{TWO}": "b"; '
            "expected the file that holds each; write the index again from the files",
        )
    ]


@pytest.mark.parametrize("has_index", [True, False])
def test_a_tensor_is_in_two_files(three: Path, has_index: bool) -> None:
    (three / THREE).write_bytes(shard({"c": 4, "a": 2}))
    write_index(three, {"a": ONE, "b": TWO, "c": THREE})
    if not has_index:
        (three / INDEX).unlink()
    assert index_said(read_checkpoint(three)) == [
        (
            "error",
            "a",
            f'{THREE}: 1 tensor also stored in "{ONE}": "a"; expected each tensor in one file; '
            "remove the copy that is not meant, and its file's other leftovers",
        )
    ]


def test_one_bad_shard_is_one_finding_and_the_rest_is_read(three: Path) -> None:
    (three / TWO).write_bytes(framed(b'{"b":'))
    census = read_checkpoint(three)
    assert said(census) == [
        (
            "error",
            TWO,
            f"{TWO}: the header is not JSON; expected one JSON object; write or download the file again",
        )
    ]
    assert list(census.tensors) == ["a", "c"]
    assert census.unread == {"b": TWO}


def test_a_refused_file_without_index_still_tells_which_tensors_it_names(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(framed(b'{"a":1,"b":2}'))
    census = read_checkpoint(tmp_path)
    assert census.unread == {"a": "m.safetensors", "b": "m.safetensors"}
    assert census.findings[0].code is Code.HEADER


def test_a_short_file_keeps_its_tensors_in_the_census(three: Path) -> None:
    os.truncate(three / THREE, (three / THREE).stat().st_size - 3)
    census = read_checkpoint(three)
    (finding,) = census.findings
    assert finding.code is Code.TRUNCATED
    assert finding.message == (
        f'{THREE}: the file ends 3 bytes early, and 1 tensor (1 in part) with it: "c"; '
        "expected 4 bytes of data; download the file again"
    )
    assert finding.detail == {"missing_bytes": 3, "partly": ["c"], "wholly": []}
    assert list(census.tensors) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("/etc/m.safetensors", "is an absolute path"),
        ("C:\\m.safetensors", "has a backslash"),
        ("C:m.safetensors", "is an absolute path"),
        ("../m.safetensors", "leaves the directory"),
        ("a/../../m.safetensors", "leaves the directory"),
        ("a\\m.safetensors", "has a backslash"),
        ("m\0.safetensors", "has a NUL byte"),
        ("", "is no plain path"),
        ("./m.safetensors", "is no plain path"),
        ("a//m.safetensors", "is no plain path"),
    ],
)
def test_a_name_that_leaves_the_directory_is_refused(three: Path, file: str, reason: str) -> None:
    write_index(three, {"a": ONE, "b": TWO, "c": THREE, "d": file})
    census = read_checkpoint(three)
    shown = file.replace("\0", "\\x00")
    assert index_said(census) == [
        (
            "error",
            file,
            f'{INDEX}: file name "{shown}" {reason}; expected a name below the index\'s directory; '
            "write the index again from the files",
        )
    ]
    assert census.unread == {"d": file}
    assert list(census.tensors) == ["a", "b", "c"]


def test_a_link_out_of_the_directory_is_followed(three: Path, tmp_path: Path) -> None:
    """A Hub cache keeps files in blobs/ and links to them from snapshots/."""
    snapshot = tmp_path / "snapshots" / "rev"
    snapshot.mkdir(parents=True)
    for name in (ONE, TWO, THREE, INDEX):
        (snapshot / name).symlink_to(Path("../..") / name)
    assert read_checkpoint(snapshot).findings == ()
    assert list(read_checkpoint(snapshot).tensors) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("target", "found", "fix"),
    [
        (TWO, "a link that leads back to itself", "replace the link with the file"),
        ("nowhere", "a link to a file that is not there", "download the file it links to"),
    ],
)
def test_a_link_that_leads_nowhere_is_a_finding(three: Path, target: str, found: str, fix: str) -> None:
    (three / TWO).unlink()
    (three / TWO).symlink_to(target)
    assert index_said(read_checkpoint(three)) == [
        ("error", TWO, f"{TWO}: {found}; expected the file that holds 1 tensor of {INDEX}; {fix}")
    ]


def test_a_directory_or_a_pipe_named_like_a_shard_is_a_finding(three: Path) -> None:
    (three / TWO).unlink()
    (three / TWO).mkdir()
    (three / THREE).unlink()
    os.mkfifo(three / THREE)
    assert [message for _, _, message in index_said(read_checkpoint(three))] == [
        f"{TWO}: a directory; expected the file that holds 1 tensor of {INDEX}; put the file itself there",
        f"{THREE}: no regular file; expected the file that holds 1 tensor of {INDEX}; put the file itself there",
    ]


def test_a_shard_that_may_not_be_read_is_a_finding(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Path, *rest: int) -> int:
        if Path(path).name == TWO:
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    assert index_said(read_checkpoint(three)) == [
        (
            "error",
            TWO,
            f"{TWO}: not readable: permission denied; expected the file that holds 1 tensor of {INDEX}; "
            "allow yourself to read it",
        )
    ]


@pytest.mark.parametrize(
    ("total", "severity", "found"),
    [
        (192, "note", "is 192, the files' size with their headers; expected the tensors' 9 bytes"),
        (9.0, "note", "is the float 9.0; expected the integer 9"),
        (10, "warning", "is 10; expected the tensors' 9 bytes"),
        (-1, "warning", "is -1; expected the tensors' 9 bytes"),
        ("9", "warning", 'is "9"; expected the tensors\' 9 bytes'),
        (True, "warning", 'is "True"; expected the tensors\' 9 bytes'),
    ],
)
def test_total_size_is_the_payload(three: Path, total: object, severity: str, found: str) -> None:
    write_index(three, {"a": ONE, "b": TWO, "c": THREE}, total_size=total)
    assert index_said(read_checkpoint(three)) == [
        (severity, INDEX, f"{INDEX}: metadata.total_size {found}; write the index again from the files")
    ]


def test_total_size_is_not_judged_while_a_file_is_missing(three: Path) -> None:
    (three / TWO).unlink()
    write_index(three, {"a": ONE, "b": TWO, "c": THREE}, total_size=1)
    assert [name for _, name, _ in index_said(read_checkpoint(three))] == [TWO]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "the index is not JSON; expected one JSON object"),
        ("[]", "no weight_map; expected an object of tensor names and file names"),
        ("{}", "no weight_map; expected an object of tensor names and file names"),
        ('{"weight_map":{}}', "an empty weight_map; expected an object of tensor names and file names"),
        ('{"weight_map":3}', "a weight_map that is no object; expected an object of tensor names and file names"),
        ('{"weight_map":{"a":1,"b":[]}}', 'no file name for "a", "b"; expected a string'),
        ('{"weight_map":{"a":"x","a":"x"}}', '1 key more than once in "weight_map": "a"; expected each once'),
        ('{"weight_map":{"a":"x"},"weight_map":{"b":"y"}}', '1 key more than once: "weight_map"; expected each once'),
        ('{"metadata":{"x":1,"x":1},"weight_map":{"a":"x"}}', '1 key more than once in "metadata": "x"; expected each once'),  # noqa: E501
        (
            '{"metadata":' + "[" * 127 + "]" * 127 + ',"weight_map":{"a:":"x"}}',
            "the index is nested more than 127 levels deep; expected 2 levels",
        ),
        (
            '{"metadata":' + "[" * 5000 + "]" * 5000 + ',"weight_map":{"a":"x"}}',
            "the index is nested more than 127 levels deep; expected 3 levels",
        ),
    ],
)  # fmt: skip
def test_a_refused_index_is_a_finding_and_the_files_on_disk_are_read(three: Path, text: str, found: str) -> None:
    (three / INDEX).write_text(text)
    census = read_checkpoint(three)
    assert index_said(census) == [("error", INDEX, f"{INDEX}: {found}; write or download the index again")]
    assert not census.has_index
    assert list(census.tensors) == ["a", "b", "c"]


def test_an_index_that_is_not_utf8_is_refused(three: Path) -> None:
    (three / INDEX).write_bytes(b'{"\xff":1}')
    assert index_said(read_checkpoint(three)) == [
        (
            "error",
            INDEX,
            f"{INDEX}: byte 2 of the index is not UTF-8; expected UTF-8 text; write or download the index again",
        )
    ]


def test_colons_in_names_and_nested_metadata_do_not_trouble_an_index(tmp_path: Path) -> None:
    write_shards(tmp_path, {"m.safetensors": {"kernel:0": 1}})
    write_index(tmp_path, {"kernel:0": "m.safetensors"}, extra={"a": {"b": "c:d"}})
    assert read_checkpoint(tmp_path).findings == ()


def test_a_second_index_is_a_note(three: Path) -> None:
    (three / "consolidated.safetensors.index.json").write_text("{}")
    assert index_said(read_checkpoint(three)) == [
        (
            "note",
            "consolidated.safetensors.index.json",
            f'{INDEX}: 1 more index beside it: "consolidated.safetensors.index.json"; expected one; '
            "name the index that is meant",
        )
    ]


def test_numbered_shards_without_index_that_are_all_there_are_good(three: Path) -> None:
    (three / INDEX).unlink()
    assert read_checkpoint(three).findings == ()


def test_a_missing_number_without_an_index_is_a_warning(three: Path) -> None:
    (three / INDEX).unlink()
    (three / TWO).unlink()
    assert index_said(read_checkpoint(three)) == [
        (
            "warning",
            TWO,
            f'm-NNNNN-of-00003.safetensors: 2 files on disk and no index; expected 3, with "{TWO}"; '
            "download the missing file and the index",
        )
    ]


def test_a_total_of_many_digits_lists_no_more_than_it_must(tmp_path: Path) -> None:
    write_shards(tmp_path, {"m-000000001-of-999999999.safetensors": {"a": 1}})
    (finding,) = read_checkpoint(tmp_path).findings
    assert finding.message == (
        "m-NNNNNNNNN-of-999999999.safetensors: 1 file on disk and no index; expected 999,999,999, with "
        '"m-000000002-of-999999999.safetensors", "m-000000003-of-999999999.safetensors", '
        '"m-000000004-of-999999999.safetensors" and 999,999,995 more; download the missing files and the index'
    )
    assert finding.detail["count"] == 999_999_998


def test_a_run_that_counts_from_0_as_its_neighbour_does_lacks_its_first(tmp_path: Path) -> None:
    """JustVugg/colibri#1317: "all 141 shards are there", and the one with the embedding was not."""
    files = [f"out-{number:05d}.safetensors" for number in range(1, 141)] + ["out-mtp-00000.safetensors"]
    write_shards(tmp_path, {file: {file: 1} for file in files})
    assert index_said(read_checkpoint(tmp_path)) == [
        (
            "warning",
            "out-00000.safetensors",
            'out-NNNNN.safetensors: 140 files on disk and no index; expected 141, with "out-00000.safetensors"; '
            "download the missing file and the index",
        )
    ]


def test_numbers_that_are_training_steps_are_left_alone(tmp_path: Path) -> None:
    write_shards(tmp_path, {f"step-{step:05d}.safetensors": {str(step): 1} for step in (500, 1000)})
    assert read_checkpoint(tmp_path).findings == ()


def test_a_hidden_file_is_not_part_of_a_checkpoint(three: Path) -> None:
    (three / "._m.safetensors").write_bytes(b"resource fork")
    assert read_checkpoint(three).findings == ()


@pytest.mark.parametrize(
    ("name", "found", "fix"),
    [
        ("gone", "not on disk", "download it, or name a file that exists"),
        ("gone.safetensors", "not on disk", "download it, or name a file that exists"),
        ("empty", "no *.safetensors file in it", "name the checkpoint's directory"),
        ("loop", "a link that leads back to itself", "replace the link with the file"),
        ("n\0l", "not on disk", "download it, or name a file that exists"),
        (
            "config.json",
            "neither a directory nor a *.safetensors nor a *.safetensors.index.json file",
            "name the checkpoint's directory",
        ),
        ("pipe.safetensors", "no regular file", "put the file itself there"),
    ],
)
def test_a_model_that_is_not_there_is_an_error(tmp_path: Path, name: str, found: str, fix: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "config.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe.safetensors")
    with pytest.raises(SourceError) as caught:
        read_checkpoint(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {found}; {fix}"


def test_an_index_without_any_of_its_files_is_findings_and_no_error(tmp_path: Path) -> None:
    write_index(tmp_path, {"a": ONE, "b": TWO})
    census = read_checkpoint(tmp_path)
    assert [(finding.severity, finding.name) for finding in census.findings] == [
        (Severity.ERROR, ONE),
        (Severity.ERROR, TWO),
    ]
    assert census.unread == {"a": ONE, "b": TWO}
