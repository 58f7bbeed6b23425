"""Every dialect with every scheme, for every family: complete, or refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones.cli import main
from modelbones.dialects.known import DIALECTS
from modelbones.errors import UsageError
from modelbones.families.registry import preset_names
from modelbones.findings import Code, Severity
from modelbones.quant.registry import RECIPES
from tests.audit.stores import said
from tests.dialects.stacks import declared, held, small, stored

NAMES = ("published", *DIALECTS)
SCHEMES = ("none", *RECIPES)


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("preset", preset_names())
def test_what_is_written_is_complete_in_every_scheme_that_can_be_written(preset: str, dialect: str) -> None:
    """Bug: an MTP module apart took the trunk's prefix, and so the trunk's names."""
    parameters = sum(pattern.numel * pattern.count for pattern in small(preset).patterns if pattern.required)
    for scheme in SCHEMES:
        try:
            stores = stored(preset, dialect, scheme)
        except UsageError:
            assert scheme != "none"
            continue
        result = held(preset, stores, declared(preset, scheme))
        errors = [finding for finding in said(result) if finding[0] == "error"]
        assert (scheme, errors) == (scheme, [])
        assert result.is_complete
        assert (result.tensors, result.parameters) == (len(stores), parameters)
        has_packed = stores != stored(preset, dialect)
        assert result.scheme == (scheme if has_packed else "none")


@pytest.mark.parametrize("preset", preset_names())
def test_published_names_are_taken_for_no_other_writers(preset: str) -> None:
    result = held(preset, stored(preset))
    assert all(not spelling.writers and not spelling.mapped for spelling in result.spellings.values())
    assert result.findings == ()


@pytest.mark.parametrize("preset", preset_names())
def test_published_names_at_full_size_are_taken_for_no_other_writers(preset: str) -> None:
    from modelbones.dialects.recognise import recognise
    from modelbones.families.registry import build, read_config
    from tests.audit.stores import census_of

    skeleton = build(read_config(preset))
    firsts = {
        name: ("BF16", pattern.shape)
        for pattern in skeleton.patterns
        for layer in pattern.layers or (None,)
        for name in pattern.names_in(layer)[:1]
    }
    spellings = recognise(skeleton, census_of(firsts).tensors)
    assert all(not spelling.writers for spelling in spellings)
    assert tuple(pattern for spelling in spellings for pattern in spelling.patterns) == tuple(
        pattern for spelling in spellings for pattern in skeleton.patterns if pattern.group is spelling.group
    )


APART = ["qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3.5-35b-a3b", "deepseek-v4-flash"]


@pytest.mark.parametrize("dialect", ["published", "mlx", "text-only"])
@pytest.mark.parametrize("preset", APART)
def test_an_mtp_module_apart_that_is_absent_is_not_looked_for_in_the_trunk(preset: str, dialect: str) -> None:
    """Bug: its norms and layers were found under the trunk's prefix, and what the trunk has not was missing."""
    whole = stored(preset, dialect)
    stores = {name: each for name, each in whole.items() if not name.startswith("mtp.")}
    assert len(stores) < len(whole)
    result = held(preset, stores)
    others = [f for f in result.findings if f.code is not Code.RENAMED]
    assert [f.code for f in others] in ([], [Code.GROUP_ABSENT])
    assert all(f.name == "mtp" for f in others)
    assert not any(f.severity is Severity.ERROR for f in result.findings if f.code is Code.RENAMED)


@pytest.mark.parametrize(
    ("preset", "dialect", "scheme", "message"),
    [
        (
            "llama-3.1-8b",
            "transformers",
            "nvfp4",
            "--scheme nvfp4: nothing to pack among the names of --dialect transformers; "
            "expected linear weights it packs; choose another of the two",
        ),
        (
            "glm-5.3-flash",
            "mlx",
            "int4-pack",
            "--scheme int4-pack: language_model.model.layers.3.mlp.switch_mlp.gate_proj.weight has shape "
            "[8, 128, 128], which it cannot pack; expected whole groups of the layout it packs; name another scheme",
        ),
        (
            "qwen3-next-80b-a3b",
            "published",
            "mlx-affine",
            "--scheme mlx-affine: model.layers.0.mlp.shared_expert.down_proj.weight has shape [128, 96], which it "
            "cannot pack; expected whole groups of the layout it packs; name another scheme",
        ),
    ],
)
def test_a_pair_that_cannot_be_written_is_refused_word_for_word(
    preset: str, dialect: str, scheme: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["synth", preset, str(tmp_path / "out"), "--scheme", scheme, "--dialect", dialect, "--shrink"]
    assert main(words) == 2
    assert capsys.readouterr().err == f"modelbones: {message}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("dialect", NAMES)
def test_files_written_by_the_command_line_check_complete(
    dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for scheme in ("none", "fp8", "nvfp4", "mxfp4", "mxfp8", "mlx-affine"):
        out = str(tmp_path / scheme)
        words = ["synth", "glm-5.3-flash", out, "--scheme", scheme, "--dialect", dialect, "--shrink", "--json"]
        assert main(words) == 0
        capsys.readouterr()
        assert main(["check", out, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["verdict"], report["scheme"]) == ("complete", scheme)
        by_group = sum(group["bytes"] for group in report["groups"].values())
        by_role = sum(role["bytes"] for role in report["roles"])
        assert report["bytes"] == by_group == by_role == sum(report["schemes"].values())
        assert report["parameters"] == sum(group["parameters"] for group in report["groups"].values())


def test_the_safetensors_package_reads_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    safetensors = pytest.importorskip("safetensors")
    for scheme in SCHEMES:
        for dialect in NAMES:
            out = tmp_path / f"{scheme}-{dialect}"
            words = ["synth", "glm-5.3-flash", str(out), "--scheme", scheme, "--dialect", dialect, "--shrink"]
            if main([*words, "--shards", "2"]) != 0:
                continue
            wanted = stored("glm-5.3-flash", dialect, scheme)
            found = {}
            for file in sorted(out.glob("*.safetensors")):
                with safetensors.safe_open(file, framework="np") as opened:
                    for name in opened.keys():  # noqa: SIM118 - no mapping
                        piece = opened.get_slice(name)
                        found[name] = (piece.get_dtype(), tuple(piece.get_shape()))
            assert found == wanted
    capsys.readouterr()
