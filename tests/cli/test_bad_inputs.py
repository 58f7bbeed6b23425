"""Whatever is given: one of our exit codes, words on standard error, never a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelbones.cli.main import VERBS
from tests.cli.running import Cli, rewrite_config, rewrite_text_config

FLAGS = [
    *("--json", "--format", "md", "github", "--strict", "--only", "--allow-absent", "mtp", "vision,trunk", "--config"),
    *("--layer", "3", "--tensors", "--unread", "--assumed", "--context", "128k", "--spec", "mtp:2", "--num-spec"),
    *("--ranks", "8", "--concurrency", "--seed", "--shards", "--fill", "sparse", "--scheme", "fp8", "none", "--force"),
    *(
        "--shrink",
        "0",
        "-1",
        "99999999999999999999",
        "1e5",
        "",
        "x",
        "\0",
        "a" * 5000,
        "..",
        "/",
        ".",
        "-",
        "--",
        "=",
        "%s",
    ),
    *("glm-5.3-flash", "config.json", "/dev/null", "/proc/self/mem", "hf://", "owner/name", "no/such", "\udcff", "é"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(st.sampled_from([*sorted(set(VERBS) - {"synth"}), "", "x"]), st.lists(st.sampled_from(FLAGS), max_size=5))
def test_any_words_give_one_of_our_exit_codes(run: Cli, verb: str, words: list[str]) -> None:
    ran = run(verb, *words)
    assert ran.code in (0, 1, 2, 3, 4)
    if ran.code > 1:
        assert ran.out == ""
        assert ran.err.startswith("modelbones: ")
    assert "Traceback" not in ran.err


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=80)
@given(st.lists(st.sampled_from([flag for flag in FLAGS if flag not in ("--force", "/", "..", ".")]), max_size=5))
def test_any_words_to_synth_too(run: Cli, tmp_path: Path, words: list[str]) -> None:
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        ran = run("synth", "glm-5.3-flash", "--shrink", *words)
    finally:
        os.chdir(here)
    assert ran.code in (0, 2, 3, 4)
    assert "Traceback" not in ran.err


def replace_config(raw: bytes) -> Callable[[Path], int]:
    return lambda folder: (folder / "config.json").write_bytes(raw)


def loop_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(folder / "config.json")


def loop_file(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    path.unlink()
    path.symlink_to(path)


def pipe_file(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    path.unlink()
    os.mkfifo(path)


def directory_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


def bad_index(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"x": "../../../etc/passwd"}}')


def no_index_json(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_bytes(b"\xff\xfe")


def producer_words(words: object) -> Callable[[Path], int]:
    return lambda folder: (folder / "hf_quant_config.json").write_text(json.dumps(words))


MALFORMED: dict[str, tuple[Callable[[Path], Any], tuple[int, ...]]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), (3,)),
    "empty config": (replace_config(b""), (3,)),
    "config of a list": (replace_config(b"[]"), (3,)),
    "config of a number": (replace_config(b"3"), (3,)),
    "config without a type": (replace_config(b"{}"), (3,)),
    "config of NaN": (replace_config(b'{"model_type": NaN}'), (3,)),
    "config with a key twice": (replace_config(b'{"model_type": "glm5_next", "model_type": "llama"}'), (3,)),
    "config nested deep": (replace_config(b'{"a":' * 100_000), (3,)),
    "config of bytes": (replace_config(b"\xff\x00"), (3,)),
    "config in a loop": (loop_config, (3,)),
    "config that is a directory": (directory_config, (3,)),
    "unknown type": (lambda folder: rewrite_config(folder, model_type="x" * 1000), (4,)),
    "type of a list": (lambda folder: rewrite_config(folder, model_type=["glm5_next"]), (3,)),
    "text config of a list": (lambda folder: rewrite_config(folder, text_config=[1]), (3,)),
    "vision config of a word": (lambda folder: rewrite_config(folder, vision_config="x"), (3,)),
    "quantisation of a word": (lambda folder: rewrite_config(folder, quantization_config="fp8"), (3, 4)),
    "quantisation of a list": (lambda folder: rewrite_config(folder, quantization_config=[]), (3, 4)),
    "quantisation of nothing": (lambda folder: rewrite_config(folder, quantization_config={}), (0, 4)),
    "quantisation unknown": (lambda folder: rewrite_config(folder, quantization_config={"quant_method": "x"}), (4,)),
    "claim of numbers": (
        lambda folder: rewrite_config(
            folder,
            quantization_config={
                "quant_method": "fp8",
                "weight_block_size": [128, 128],
                "modules_to_not_convert": [1, None, {}],
            },
        ),
        (1,),
    ),
    "claim of a pattern that is none": (
        lambda folder: rewrite_config(
            folder,
            quantization_config={
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"g": {"targets": ["re:((("]}},
                "ignore": ["re:*", 3],
            },
        ),
        (0, 1),
    ),
    "a zero size": (lambda folder: rewrite_text_config(folder, {"hidden_size": 0}), (3,)),
    "a huge size": (lambda folder: rewrite_text_config(folder, {"hidden_size": 2**40}), (1, 3)),
    "a size of words": (lambda folder: rewrite_text_config(folder, {"hidden_size": "4096"}), (3,)),
    "too many experts": (lambda folder: rewrite_text_config(folder, {"n_routed_experts": 10**9}), (3,)),
    "too many layers and experts": (
        lambda folder: rewrite_text_config(folder, {"n_routed_experts": 2**53, "moe_intermediate_size": 2**53}),
        (3,),
    ),
    "a file in a loop": (loop_file, (1,)),
    "a pipe for a file": (pipe_file, (1,)),
    "an index that leaves": (bad_index, (1,)),
    "an index of bytes": (no_index_json, (1,)),
    "producer's file of a list": (producer_words([1]), (3,)),
    "producer's file of nothing": (producer_words({}), (4,)),
    "producer's file of another": (producer_words({"producer": {"name": "x"}}), (4,)),
    "producer's file that says nothing": (producer_words({"producer": {"name": "modelopt"}}), (4,)),
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("flags", [(), ("--json",), ("--format", "github")])
def test_a_malformed_model_gives_one_of_our_exit_codes(case: str, flags: tuple[str, ...], bf16: Path, run: Cli) -> None:
    spoil, codes = MALFORMED[case]
    spoil(bf16)
    ran = run("check", bf16, *flags)
    assert ran.code in codes, ran.err
    if ran.code > 1:
        assert ran.out == ""
        assert ran.err.startswith("modelbones: ")
    else:
        assert ran.err == ""
    for verb in ("show", "state"):
        assert run(verb, bf16, *flags).code in (0, 2, 3, 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_any_damage_to_a_file_gives_a_verdict(
    run: Cli, made: dict[str, Path], tmp_path: Path, data: st.DataObject
) -> None:
    scheme = data.draw(st.sampled_from(["none", "fp8"]))
    folder = tmp_path / scheme
    folder.mkdir(exist_ok=True)
    for path in made[scheme].iterdir():
        target = folder / path.name
        target.unlink(missing_ok=True)
        target.symlink_to(path)
    name = data.draw(st.sampled_from(sorted(path.name for path in folder.iterdir() if path.name != "config.json")))
    raw = bytearray((made[scheme] / name).read_bytes())
    start = data.draw(st.integers(0, min(len(raw), 20_000) - 1))
    patch = data.draw(st.binary(min_size=1, max_size=8))
    kind = data.draw(st.sampled_from(["overwrite", "insert", "cut", "drop"]))
    if kind == "overwrite":
        raw[start : start + len(patch)] = patch
    elif kind == "insert":
        raw[start:start] = patch
    elif kind == "cut":
        del raw[start:]
    else:
        del raw[start : start + len(patch)]
    (folder / name).unlink()
    (folder / name).write_bytes(bytes(raw))
    ran = run("check", folder, "--json")
    assert ran.code in (0, 1)
    assert ran.err == ""
    assert (ran.code == 1) == any(severity == "error" for severity, _, _ in ran.findings)
    if kind == "cut" and name.endswith(".safetensors"):
        assert [code for _, code, _ in ran.findings] in (["truncated"], ["header"])


def test_a_config_of_more_tensors_than_any_index_names_is_refused(bf16: Path, run: Cli) -> None:
    """Bug: a count of experts in the billions took all memory."""
    rewrite_text_config(bf16, {"n_routed_experts": 10**9})
    for verb in ("check", "show", "state"):
        ran = run(verb, bf16)
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.splitlines()[1] == (
            "  layers and experts: found 9,000,000,202 tensors; expected at most 4,000,000 in all"
        )
