from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.config_file import MAX_CONFIG_BYTES, load_config, locate_config, parse_config
from modelbones.errors import ModelbonesError, SourceError
from modelbones.families.registry import read_config
from tests.published import nested


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "an empty file; fetch it again"),
        (b" \r\n\t", "an empty file; fetch it again"),
        (b"{", "no valid JSON at line 1, column 2; correct it or fetch it again"),
        (b'{"a": 1 "b": 2}', "no valid JSON at line 1, column 9; correct it or fetch it again"),
        (b'{\n "a" 1}', "no valid JSON at line 2, column 6; correct it or fetch it again"),
        (b"{} {}", "no valid JSON at line 1, column 4; correct it or fetch it again"),
        (b"{'a': 1}", "no valid JSON at line 1, column 2; correct it or fetch it again"),
        (b'{"a": "\n"}', "no valid JSON at line 1, column 8; correct it or fetch it again"),
        (b"version https://git-lfs", "no valid JSON at line 1, column 1; correct it or fetch it again"),
        (b"\x00", "no valid JSON at line 1, column 1; correct it or fetch it again"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7; save it as UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8 at byte 0; save it as UTF-8"),
        (b"\xef\xbb\xbf{}", "a byte order mark before the JSON; save it as UTF-8 without one"),
        (b'{"a": 1, "b": 2, "a": 1}', 'the key "a" twice in one object; keep the right one'),
        (b'{"x": {"a": 1, "a": 2}}', 'the key "a" twice in one object; keep the right one'),
        (b'{"x": [{"a\\n": 1, "a\\u000a": 2}]}', 'the key "a\\n" twice in one object; keep the right one'),
        (b"[1]", "a list at top level; expected one JSON object; name a model's config.json"),
        (b'"a"', "a string at top level; expected one JSON object; name a model's config.json"),
        (b"true", "true or false at top level; expected one JSON object; name a model's config.json"),
        (b"null", "null at top level; expected one JSON object; name a model's config.json"),
        (b"12", "a number at top level; expected one JSON object; name a model's config.json"),
        (b"NaN", "a number at top level; expected one JSON object; name a model's config.json"),
        (b"[" * 100_000, "JSON nested deeper than any config; fetch the model's own config.json"),
        (b'{"a":' * 100_000, "JSON nested deeper than any config; fetch the model's own config.json"),
        (
            b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "JSON nested deeper than any config; fetch the model's own config.json",
        ),
        (b'{"a": 1' + b"0" * 5000 + b"}", "an integer with thousands of digits; correct it or fetch it again"),
    ],
)
def test_what_is_no_single_json_object_is_refused_in_our_words(raw: bytes, said: str) -> None:
    with pytest.raises(SourceError) as error:
        parse_config(raw, place="config.json")
    assert str(error.value) == f"config.json: {said}"
    assert error.value.place == "config.json"


def test_a_duplicate_key_is_shown_printable_and_short() -> None:
    """Control characters and lone surrogates of the file reached the terminal as they were."""
    raw = b'{"\\ud800\\u001b[31m": 1, "\\ud800\\u001b[31m": 2}'
    with pytest.raises(SourceError) as error:
        parse_config(raw, place="config.json")
    assert error.value.found == 'the key "\\ud800\\u001b[31m" twice in one object'
    key = "k" * 500
    with pytest.raises(SourceError) as error:
        parse_config(f'{{"{key}": 1, "{key}": 2}}'.encode(), place="config.json")
    assert len(str(error.value)) < 200


def test_the_last_of_many_keys_repeated_is_found() -> None:
    """Every key was counted against every other one: minutes for a large file."""
    keys = "".join(f'"k{index}":1,' for index in range(200_000))
    with pytest.raises(SourceError) as error:
        parse_config(f'{{{keys}"k199999":1}}'.encode(), place="config.json")
    assert error.value.found == 'the key "k199999" twice in one object'


def test_a_file_past_the_limit_is_refused() -> None:
    with pytest.raises(SourceError) as error:
        parse_config(b" " * (MAX_CONFIG_BYTES + 1), place="config.json")
    assert str(error.value) == "config.json: more than 67,108,864 bytes; name a config.json, not a weight file"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_as_ours(raw: bytes) -> None:
    with suppress(ModelbonesError):
        assert isinstance(parse_config(raw, place="config.json"), dict)


@given(st.text(alphabet='{}[]",:01.eE+-ntf\\u d8', max_size=40))
def test_any_text_that_looks_like_json_is_read_or_refused_as_ours(text: str) -> None:
    with suppress(ModelbonesError):
        assert parse_config(text.encode(), place="config.json") == json.loads(text)


def test_a_file_and_the_directory_that_holds_it_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(nested()))
    assert locate_config(file) == locate_config(tmp_path) == file
    assert load_config(file) == nested()
    by_directory, by_file = read_config(tmp_path), read_config(str(file))
    assert by_directory == by_file
    assert by_file.declared.place == str(file)


def test_a_link_to_the_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text(json.dumps(nested()))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").symlink_to(tmp_path / "blob")
    assert read_config(tmp_path / "model") == read_config(tmp_path / "model" / "config.json")


def _refused(path: Path) -> str:
    with pytest.raises(SourceError) as error:
        read_config(path)
    return str(error.value)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    expected = "not there; name a directory, a config.json or a preset that `modelbones families` lists"
    assert _refused(path) == f"{path}: {expected}"


def test_a_directory_without_config_is_refused(tmp_path: Path) -> None:
    expected = "a directory without config.json; name the directory of a model, or its config.json"
    assert _refused(tmp_path) == f"{tmp_path}: {expected}"


def test_a_directory_named_config_json_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "config.json"
    inside.mkdir()
    assert _refused(tmp_path) == f"{inside}: not a regular file; name a config.json"
    expected = "a directory without config.json; name the directory of a model, or its config.json"
    assert _refused(inside) == f"{inside}: {expected}"


@pytest.mark.parametrize("inside", [False, True])
def test_a_loop_of_links_is_refused(tmp_path: Path, *, inside: bool) -> None:
    loop = tmp_path / "config.json"
    loop.symlink_to(tmp_path / "again")
    (tmp_path / "again").symlink_to(loop)
    expected = "a loop of symbolic links; replace the link by the file it should lead to"
    assert _refused(tmp_path if inside else loop) == f"{loop}: {expected}"


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "config.json"
    link.symlink_to(tmp_path / "gone")
    expected = "not there; name a directory, a config.json or a preset that `modelbones families` lists"
    assert _refused(tmp_path) == f"{link}: {expected}"


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    path = tmp_path / "file" / "config.json"
    assert _refused(path) == f"{path}: a part of this path is not a directory; correct the path"


def test_a_path_too_long_for_the_system_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 5000)
    assert _refused(path) == f"{path}: a path longer than this system allows; correct the path"


def test_a_path_with_a_null_character_is_refused() -> None:
    path = Path("a\0b")
    assert _refused(path) == f"{path}: a path with a null character; correct the path"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    assert _refused(pipe) == f"{pipe}: not a regular file; name a config.json"


@pytest.mark.parametrize("inside", [False, True])
def test_a_path_the_user_may_not_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool
) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")

    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir" if inside else "open", denied)
    assert _refused(file) == f"{file}: not readable by this user; change its permissions or run as its owner"


def test_a_failing_disk_is_refused_in_our_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")

    def broken(self: Path, *_: object, **__: object) -> None:
        raise OSError(5, "Input/output error", str(self))

    monkeypatch.setattr(Path, "open", broken)
    assert _refused(file) == f"{file}: not readable; check the disk and the path"
