"""Every verb: help, JSON, Markdown, 80 columns, and the words of wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones import __version__
from modelbones.cli.main import VERBS
from modelbones.report.plain import WIDTH
from tests.cli.running import Cli

PRESET = "glm-5.3-flash"
REPORTS: dict[str, tuple[str, ...]] = {
    "show": ("show", PRESET),
    "show --layer 0": ("show", PRESET, "--layer", "0"),
    "show --layer 3": ("show", PRESET, "--layer", "3"),
    "show --layer 45": ("show", PRESET, "--layer", "45"),
    "show --tensors": ("show", PRESET, "--tensors"),
    "show --unread": ("show", PRESET, "--unread"),
    "show --assumed": ("show", PRESET, "--assumed"),
    "state": ("state", PRESET),
    "state with everything": ("state", PRESET, "--context", "128k", "--spec", "mtp:3", "--ranks", "8"),
    "state of many": ("state", PRESET, "--concurrency", "256", "--num-spec", "2"),
    "families": ("families",),
}


def test_help_names_every_verb_and_every_exit_code(run: Cli) -> None:
    ran = run("--help")
    assert ran.code == 0
    assert all(f"    {verb} " in ran.out for verb in VERBS)
    assert all(word in " ".join(ran.out.split()) for word in ("0 good", "1 found wanting", "2 wrong use", "4 cannot"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_on_80_columns(verb: str, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run(verb, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: modelbones {verb} ")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "--json" in ran.out


def test_the_version_is_the_packages(run: Cli) -> None:
    assert run("--version").out == f"modelbones {__version__}\n"


@pytest.mark.parametrize("report", REPORTS)
def test_every_text_report_of_the_preset_fits_80_columns(report: str, run: Cli) -> None:
    ran = run(*REPORTS[report])
    assert (ran.code, ran.err) == (0, "")
    assert WIDTH == 80
    wide = [line for line in ran.out.splitlines() if len(line) > WIDTH]
    assert wide == []
    assert ran.out.endswith("\n")
    assert not ran.out.endswith("\n\n")
    assert "\x1b" not in ran.out


def test_check_and_synth_fit_80_columns(run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for scheme in ("none", "fp8"):
        assert max(map(len, run("synth", PRESET, scheme, "--scheme", scheme).out.splitlines())) <= 80
        (Path(scheme) / "model-00001-of-00062.safetensors").unlink(missing_ok=True)
        ran = run("check", scheme)
        assert ran.code == (0 if scheme == "none" else 1)
        assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("report", REPORTS)
def test_every_report_has_json_with_a_schema(report: str, run: Cli) -> None:
    words = REPORTS[report]
    ran = run(*words, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.data["schema"] == f"modelbones/{words[0]}/1"
    assert "NaN" not in ran.out
    assert not any(isinstance(value, float) for value in leaves(ran.data)), "sizes are exact integers"


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def test_the_json_of_state_has_the_keys_others_rely_on(run: Cli) -> None:
    data = run("state", PRESET, "--context", "131072", "--ranks", "8", "--json").data
    six = ("kda_recurrent", "kda_conv", "dsa_kv_per_token", "dsa_indexer_per_token")
    keys = {*six, "mhc_highway_per_token", "moe_routing_per_token", "fixed", "per_token", "for_sequence", "peak"}
    assert keys | {"terms"} == set(data["budget"]) == set(data["per_rank"])
    assert data["budget"]["for_sequence"] == 2_363_654_144
    assert set(data["reserve"]) >= {"target_layers", "proposer", "total", "for_batch"}
    assert data["reserve"]["target_layers"] == 739_639_296
    assert data["device"]["total"] == sum(data["device"]["parts"].values())


def test_the_json_of_show_has_the_keys_others_rely_on(run: Cli) -> None:
    data = run("show", PRESET, "--json").data
    assert (data["tensors"], data["bytes"], data["parameters"]) == (38_770, 642_646_653_816, 321_323_031_390)
    assert [layer["index"] for layer in data["layers"]] == list(range(46))
    for layer in data["layers"]:
        assert set(layer) >= {"index", "mixer", "mlp", "hyper_connection", "is_mtp", "state"}
    assert [layer["mixer"] for layer in data["layers"][:4]] == ["kda", "kda", "kda", "dsa"]


def test_the_json_of_families_names_each_model_type(run: Cli) -> None:
    families = run("families", "--json").data["families"]
    assert "glm5_next" in [family["model_type"] for family in families]


@pytest.mark.parametrize("style", ["md", "github"])
@pytest.mark.parametrize("report", REPORTS)
def test_every_report_has_markdown(report: str, style: str, run: Cli) -> None:
    ran = run(*REPORTS[report], "--format", style)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    tables = [number for number, line in enumerate(lines) if line.startswith("| ---")]
    for number in tables:
        columns = lines[number].count("|")
        assert lines[number - 1].count("|") == columns
        assert lines[number - 2] == "" if number >= 2 else True
        assert lines[number + 1].replace("\\|", "").count("|") == columns
    assert tables or all(line.startswith(("- ", "### ")) or not line for line in lines)


@pytest.mark.parametrize("report", ["show", "state", "families"])
def test_text_is_what_is_printed_without_a_format(report: str, run: Cli) -> None:
    assert run(*REPORTS[report]).out == run(*REPORTS[report], "--format", "text").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the following arguments are required: VERB; see modelbones --help"),
        (("chekc", "x"), "argument VERB: invalid choice: 'chekc' (choose from "),
        (("show",), "show: the following arguments are required: MODEL; see modelbones show --help"),
        (("show", PRESET, "--layer", "46"), "--layer: found 46; expected 0 to 45; name a layer this model has"),
        (
            ("show", PRESET, "--layer", "-1"),
            'show: argument --layer: count: found "-1"; expected 131072, ',
        ),
        (("show", PRESET, "--tensors", "--unread"), "show: argument --unread: not allowed with argument --tensors; "),
        (("show", PRESET, "--json", "--format", "md"), "show: argument --format: not allowed with argument --json; "),
        (("show", PRESET, "--format", "xml"), "show: argument --format: invalid choice: 'xml' (choose from "),
        (("state", PRESET, "--spec", "mtp:0"), 'state: argument --spec: found "mtp:0"; expected mtp:K with K tokens '),
        (("state", PRESET, "--ranks", "0"), 'state: argument --ranks: found "0"; expected 1 or more; '),
        (("state", PRESET, "--context", "1.5"), 'state: argument --context: count: found "1.5"; '),
        (("synth", PRESET), "synth: the following arguments are required: OUT; see modelbones synth --help"),
        (("synth", PRESET, "out", "--shards", "0"), 'synth: argument --shards: found "0"; expected 1 or more; '),
        (("synth", PRESET, "out", "--fill", "ones"), "synth: argument --fill: invalid choice: 'ones' (choose from "),
        (("families", "x"), "families: unrecognized arguments: x; see modelbones families --help"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(words: tuple[str, ...], message: str, run: Cli) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"modelbones: {message}")
    assert ran.err.count("\n") == 1


def test_json_is_the_only_thing_on_standard_output(run: Cli) -> None:
    for words in REPORTS.values():
        json.loads(run(*words, "--json").out)
