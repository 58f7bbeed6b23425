"""Checkpoints transformers 5.23 writes and reads, against ours, in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelbones.cli import main
from tests.audit.stores import tiny_config

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle

MTP = "model.language_model.layers.5."


def _config(**text: Any) -> Any:
    """The shrunk config as transformers holds it: both mixers, dense and routed MLPs, pools of 4."""
    config = tiny_config()
    config["text_config"] = {**config["text_config"], **text}
    return transformers.Glm5NextConfig.from_dict(config)


def _saved(folder: Path, dtype: Any, **text: Any) -> Any:
    torch.manual_seed(11)
    model = transformers.Glm5NextForConditionalGeneration(_config(**text)).to(dtype)
    model.save_pretrained(folder)
    return model


def _checked(folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["check", str(folder), "--json", *flags])
    return code, json.loads(capsys.readouterr().out)


def test_the_tiny_model_has_both_mixers_both_mlps_and_pools_of_four() -> None:
    text = _config().text_config
    assert set(text.layer_types) == {"linear_attention", "indexed_attention"}
    assert set(text.mlp_layer_types) == {"dense", "sparse"}
    assert text.index_kpool == 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_transformers_saves_is_a_whole_trunk_and_tower_without_an_mtp_layer(
    dtype: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _saved(tmp_path, getattr(torch, dtype))
    code, data = _checked(tmp_path, capsys)
    verdicts = {group: judged["verdict"] for group, judged in data["groups"].items()}
    assert verdicts == {"trunk": "complete", "mtp": "declared but absent", "vision": "complete"}
    errors = [(each["code"], each["name"]) for each in data["findings"] if each["severity"] == "error"]
    assert (code, errors) == (1, [("group_absent", "mtp")])
    assert data["groups"]["trunk"].items() >= {"bound": 184, "required": 184}.items()
    assert data["groups"]["vision"].items() >= {"bound": 39, "required": 39}.items()
    code, data = _checked(tmp_path, capsys, "--allow-absent", "mtp")
    assert (code, data["verdict"]) == (0, "complete")
    # Cast as a whole, the model keeps nothing in F32: each kind of small tensor is a warning.
    risky = {each["code"] for each in data["findings"] if each["severity"] == "warning"}
    assert risky == ({"dtype"} if dtype == "bfloat16" else set())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_without_a_declared_mtp_layer_it_is_complete(
    dtype: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _saved(tmp_path, getattr(torch, dtype), num_nextn_predict_layers=0)
    code, data = _checked(tmp_path, capsys)
    assert (code, data["verdict"], data["groups"]["mtp"]["verdict"]) == (0, "complete", "absent")


def test_a_model_loaded_in_bf16_and_saved_keeps_the_small_tensors_in_f32(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which ones transformers keeps is its own list: of ours, those that it rounds are warned of."""
    assert main(["synth", "glm-5.3-flash", str(tmp_path / "made"), "--shrink", "--fill", "random"]) == 0
    model = transformers.Glm5NextForConditionalGeneration.from_pretrained(tmp_path / "made", dtype=torch.bfloat16)
    model.save_pretrained(tmp_path / "again")
    code, data = _checked(tmp_path / "again", capsys, "--allow-absent", "mtp")
    assert (code, data["verdict"]) == (0, "complete")
    assert {each["severity"] for each in data["findings"]} <= {"note", "warning"}


@pytest.mark.parametrize("files", ["1", "3"])
def test_what_synth_writes_loads_with_nothing_missing_and_equal_weights(files: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    arguments = ["synth", "glm-5.3-flash", str(tmp_path), "--shrink", "--fill", "random", "--seed", "3", "--force"]
    assert main([*arguments, "--shards", files]) == 0
    model, remarks = transformers.Glm5NextForConditionalGeneration.from_pretrained(
        tmp_path, dtype=torch.float32, output_loading_info=True
    )
    assert set(remarks["missing_keys"]) == set()
    assert set(remarks["mismatched_keys"]) == set()
    assert all(name.startswith(MTP) for name in remarks["unexpected_keys"])

    stored = {name: t for path in tmp_path.glob("*.safetensors") for name, t in load_file(path).items()}
    trunk = {name: tensor for name, tensor in stored.items() if not name.startswith(MTP)}
    assert len(trunk) == 184 + 39
    held = model.state_dict()
    unmatched = {name for name in trunk if not _is_held(name, trunk, held)}
    assert unmatched == set()
    # Nothing is held that is not stored: element by element the two are one model.
    assert sum(t.numel() for t in held.values()) == sum(t.numel() for t in trunk.values())


def _is_held(name: str, stored: dict[str, Any], held: dict[str, Any]) -> bool:
    """Whether the model holds this tensor, under its own name or inside a merged or stacked one."""
    tensor = stored[name].float()
    if name in held:
        return bool(torch.equal(held[name].float(), tensor))
    layer = name.partition(".layers.")[2].partition(".")[0]
    stem = name.partition(f".layers.{layer}.")[0] + f".layers.{layer}."
    nearby = [value.float() for key, value in held.items() if key.startswith(stem)]
    return any(_holds(value, tensor) for value in nearby)


def _holds(value: Any, tensor: Any) -> bool:
    """Whether `value` is this tensor, a stack that has it as a member, or rows of a merge."""
    if value.shape == tensor.shape and torch.equal(value, tensor):
        return True
    if value.dim() == tensor.dim() + 1:
        return any(_holds(member, tensor) for member in value)
    if value.dim() == tensor.dim() and value.shape[1:] == tensor.shape[1:] and value.shape[0] % tensor.shape[0] == 0:
        return any(torch.equal(part, tensor) for part in value.split(tensor.shape[0]))
    return False
