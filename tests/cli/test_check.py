"""`check`: its flags, its exit codes, its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones.cli import main
from tests.cli.running import Cli, rewrite_config, rewrite_text_config


def drop(folder: Path, needle: str) -> int:
    """Take every tensor whose name holds `needle` out of a checkpoint, data and all; gives their number."""
    index = folder / "model.safetensors.index.json"
    dropped = 0
    for path in folder.glob("*.safetensors"):
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + length])
        data = raw[8 + length :]
        kept: dict[str, object] = {}
        body = b""
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if needle in name:
                dropped += 1
                continue
            start, end = entry["data_offsets"]
            kept[name] = {**entry, "data_offsets": [len(body), len(body) + end - start]}
            body += data[start:end]
        text = json.dumps(kept).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + body)
        if not kept:
            path.unlink()
    words = json.loads(index.read_text())
    words["weight_map"] = {name: file for name, file in words["weight_map"].items() if needle not in name}
    del words["metadata"]
    index.write_text(json.dumps(words))
    return dropped


@pytest.mark.parametrize("scheme", ["none", "fp8"])
def test_a_sound_checkpoint_exits_0(scheme: str, made: dict[str, Path], run: Cli) -> None:
    for flags in ((), ("--strict",), ("--json",), ("--format", "md"), ("--format", "github")):
        ran = run("check", made[scheme], *flags)
        assert (ran.code, ran.err) == (0, "")
    assert run("check", made[scheme], "--format", "github").out == ""


@pytest.mark.parametrize("what", ["model.safetensors.index.json", ""])
def test_the_index_or_the_directory_may_be_named(what: str, made: dict[str, Path], run: Cli) -> None:
    assert run("check", made["fp8"] / what).code == 0


def test_one_file_of_several_is_a_part_of_the_model(made: dict[str, Path], run: Cli) -> None:
    ran = run("check", made["none"] / "model-00001-of-00003.safetensors", "--json")
    assert ran.code == 1
    assert ran.data["verdict"] == "incomplete"
    assert ran.data["files"] == 1


def test_the_json_has_the_keys_others_rely_on(made: dict[str, Path], run: Cli) -> None:
    data = run("check", made["fp8"], "--json").data
    assert data["schema"] == "modelbones/check/1"
    assert (data["verdict"], data["tensors"], data["files"], data["scheme"]) == ("complete", 370, 3, "fp8")
    assert (data["bytes"], data["parameters"]) == (3_595_268, 2_648_566)
    # 4 layers x 23 (KDA, norms, streams) + 22 of layer 3 + 20 of the MTP layer + 3.
    structural = {"required": 137, "bound": 137, "missing": [], "unexpected": [], "is_complete": True}
    assert data["structural"].items() >= structural.items()
    assert data["structural"]["deferred"] == 272 - 137
    assert data["structural_raw"]["is_complete"] is False
    assert len(data["structural_raw"]["unexpected"]) == 8
    assert set(data["groups"]) == {"trunk", "mtp", "vision"}
    for name, required in (("trunk", 184), ("mtp", 49), ("vision", 39)):
        assert data["groups"][name].items() >= {"verdict": "complete", "bound": required, "required": required}.items()
    assert data["findings"] == []


def test_a_finding_in_json_has_code_severity_name_and_message(bf16: Path, run: Cli) -> None:
    assert drop(bf16, "layers.1.input_layernorm") == 1
    ran = run("check", bf16, "--json")
    assert ran.code == 1
    (finding,) = ran.data["findings"]
    name = "model.language_model.layers.1.input_layernorm.weight"
    assert (finding["code"], finding["severity"], finding["name"]) == ("missing", "error", name)
    assert finding["message"].startswith(f"{name}: not stored; ")
    assert set(finding) == {"code", "severity", "name", "message", "why", "fix", "detail"}
    assert ran.data["structural"]["missing"] == [name]


def test_an_absent_mtp_layer_fails_unless_it_is_allowed(bf16: Path, run: Cli) -> None:
    assert drop(bf16, "layers.5.") == 49
    ran = run("check", bf16, "--json")
    assert (ran.code, ran.findings) == (1, [("error", "group_absent", "mtp")])
    assert ran.data["groups"]["mtp"]["verdict"] == "declared but absent"
    allowed = run("check", bf16, "--allow-absent", "mtp", "--strict", "--json")
    assert (allowed.code, allowed.findings) == (0, [("note", "group_absent", "mtp")])
    assert allowed.data["verdict"] == "complete"
    assert run("check", bf16, "--allow-absent", "vision").code == 1
    assert run("check", bf16, "--allow-absent", "mtp,vision").code == 0
    assert run("check", bf16, "--only", "trunk,vision", "--json").data["findings"] == []
    assert run("check", bf16, "--only", "mtp").code == 1


def test_an_absent_tower_fails_unless_it_is_allowed(bf16: Path, run: Cli) -> None:
    assert drop(bf16, "model.visual.") == 39
    assert run("check", bf16, "--json").findings == [("error", "group_absent", "vision")]
    assert run("check", bf16, "--allow-absent", "vision").code == 0


def test_a_config_silent_about_the_mtp_layer_is_judged_by_what_is_stored(bf16: Path, run: Cli) -> None:
    """Bug: a stored MTP layer was called unexpected where the config did not say whether there is one."""
    rewrite_text_config(bf16, {"num_nextn_predict_layers": None})
    ran = run("check", bf16, "--json", "--strict")
    assert (ran.code, ran.findings) == (0, [("note", "unexpected", "mtp")])
    assert ran.data["groups"]["mtp"].items() >= {"verdict": "complete", "bound": 49, "required": 49}.items()
    assert ran.data["findings"][0]["message"] == (
        f"mtp: stored, and {bf16 / 'config.json'} does not say how many MTP layers there are; judged as if it "
        "declared one; expected num_nextn_predict_layers in the config; write num_nextn_predict_layers 1 into it"
    )
    assert run("check", bf16, "--json", "--only", "trunk").findings == []


def test_a_silent_config_with_a_broken_mtp_layer_still_fails(bf16: Path, run: Cli) -> None:
    rewrite_text_config(bf16, {"num_nextn_predict_layers": None})
    drop(bf16, "layers.5.enorm")
    ran = run("check", bf16, "--json")
    name = "model.language_model.layers.5.enorm.weight"
    assert (ran.code, ran.findings) == (1, [("error", "missing", name), ("note", "unexpected", "mtp")])


def test_a_silent_config_without_a_stored_mtp_layer_has_none(bf16: Path, run: Cli) -> None:
    rewrite_text_config(bf16, {"num_nextn_predict_layers": None})
    drop(bf16, "layers.5.")
    ran = run("check", bf16, "--json")
    assert (ran.code, ran.findings) == (0, [])
    assert ran.data["groups"]["mtp"]["verdict"] == "absent"


def test_a_config_that_says_there_is_none_makes_a_stored_mtp_layer_a_warning(bf16: Path, run: Cli) -> None:
    rewrite_text_config(bf16, {"num_nextn_predict_layers": 0})
    ran = run("check", bf16, "--json")
    assert (ran.code, ran.findings) == (0, [("warning", "unexpected", "mtp")])
    assert ran.data["findings"][0]["detail"] == {"count": 49}
    assert run("check", bf16, "--strict").code == 1


def test_a_text_config_beside_a_stored_tower_is_a_warning(bf16: Path, run: Cli) -> None:
    rewrite_config(bf16, vision_config=None)
    assert run("check", bf16, "--json").findings == [("warning", "unexpected", "vision")]
    assert run("check", bf16).code == 0
    assert run("check", bf16, "--strict").code == 1


def test_another_config_can_be_held_against_a_checkpoint(bf16: Path, made: dict[str, Path], run: Cli) -> None:
    (bf16 / "config.json").unlink()
    assert run("check", bf16, "--config", made["none"] / "config.json").code == 0
    ran = run("check", bf16, "--config", made["fp8"] / "config.json", "--json")
    assert [code for _, code, _ in ran.findings] == ["quant_conflict"]
    assert run("check", bf16, "--config", "glm-5.3-flash").code == 1


@pytest.mark.parametrize(
    ("quantization", "words"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 'unknown quantisation scheme "bitsandbytes"'),
        ({"quant_method": "exl3"}, 'unknown quantisation scheme "exl3"'),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "fp8 with weight_block_size [64, 64]"),
        ({"quant_method": ["fp8"]}, "unknown quantisation scheme"),
    ],
)
def test_a_scheme_that_cannot_be_judged_exits_4_by_name_and_gives_no_verdict(
    quantization: object, words: str, bf16: Path, run: Cli
) -> None:
    rewrite_config(bf16, quantization_config=quantization)
    ran = run("check", bf16)
    assert (ran.code, ran.out) == (4, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_an_unknown_architecture_exits_4(bf16: Path, run: Cli) -> None:
    rewrite_config(bf16, model_type="gpt_neo_of_tomorrow")
    ran = run("check", bf16)
    assert (ran.code, ran.out) == (4, "")
    assert 'unknown architecture "gpt_neo_of_tomorrow"' in ran.err


def test_a_refused_config_exits_3(bf16: Path, run: Cli) -> None:
    rewrite_text_config(bf16, {"index_kpool": None})
    ran = run("check", bf16)
    assert (ran.code, ran.out) == (3, "")
    assert "text_config.index_kpool" in ran.err


def test_a_directory_without_weights_exits_3(bf16: Path, run: Cli) -> None:
    for path in bf16.glob("*.safetensors*"):
        path.unlink()
    ran = run("check", bf16)
    assert (ran.code, ran.err) == (
        3,
        f"modelbones: {bf16}: no *.safetensors file in it; name the checkpoint's directory\n",
    )


def test_a_config_alone_is_wrong_use(bf16: Path, run: Cli) -> None:
    ran = run("check", bf16 / "config.json")
    assert ran.code == 2
    assert "found a config alone" in ran.err


@pytest.mark.parametrize("model", ["not-there", "glm-5.3-flash", "not-there/model.safetensors"])
def test_a_model_that_is_not_there_is_named_itself(model: str, run: Cli) -> None:
    """Bug: the config.json beside it was called missing, and the model itself not mentioned."""
    ran = run("check", model)
    assert ran.code in (2, 3)
    assert ran.err.startswith(f"modelbones: {model}: ")


@pytest.mark.parametrize("flag", ["--only", "--allow-absent"])
@pytest.mark.parametrize("value", ["everything", "", "mtp,", "MTP", "mtp vision"])
def test_an_unknown_group_is_wrong_use(flag: str, value: str, bf16: Path, run: Cli) -> None:
    ran = run("check", bf16, flag, value)
    assert (ran.code, ran.out) == (2, "")
    assert "expected some of trunk, mtp, vision" in ran.err


def test_github_annotations_are_one_a_finding_and_escaped(bf16: Path, run: Cli) -> None:
    drop(bf16, "layers.1.input_layernorm")
    rewrite_config(bf16, vision_config=None)
    ran = run("check", bf16, "--format", "github")
    name = "model.language_model.layers.1.input_layernorm.weight"
    error, warning = ran.out.splitlines()
    assert error == (
        f"::error title=missing::{name}: not stored; expected a tensor of shape [128]; "
        "fetch the file that should hold it, or convert again"
    )
    assert warning.startswith("::warning title=unexpected::vision: 39 tensors of a group")
    assert ran.code == 1


def test_markdown_has_the_groups_as_a_table_and_the_findings_as_sections(bf16: Path, run: Cli) -> None:
    drop(bf16, "layers.1.input_layernorm")
    lines = run("check", bf16, "--format", "md").out.splitlines()
    assert "| group | verdict | bound | of | tensors | bytes | names |" in lines
    assert "| --- | --- | ---: | ---: | ---: | ---: | --- |" in lines
    assert "### error: missing" in lines
    assert any(line.startswith("- model.language_model.layers.1.input_layernorm.weight: not stored") for line in lines)


def test_text_says_the_verdict_and_why_each_finding_matters(bf16: Path, run: Cli) -> None:
    drop(bf16, "layers.1.input_layernorm")
    ran = run("check", bf16)
    assert "  verdict     incomplete; 1 error" in ran.out
    assert "error: missing" in ran.out
    assert "Why it matters: engines stop here" in ran.out


def test_a_preset_alone_has_no_checkpoint_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "glm-5.3-flash"]) == 2
    assert capsys.readouterr().err == (
        "modelbones: glm-5.3-flash: found a preset, which has no checkpoint; expected one; "
        "name its directory, or make one: modelbones synth glm-5.3-flash OUT\n"
    )


@pytest.mark.parametrize("verb", ["show", "check", "state"])
def test_a_gguf_file_is_named_as_what_it_is(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    assert main([verb, str(tmp_path / "model.gguf")]) == 3
    assert capsys.readouterr().err == (
        f"modelbones: {tmp_path}/model.gguf: a GGUF file, whose header is not read yet; "
        "name the safetensors checkpoint it was made from\n"
    )
