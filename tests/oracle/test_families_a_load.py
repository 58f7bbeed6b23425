"""The load direction: a tiny checkpoint written from our names, loaded by transformers 5.23 with equal weights.

It is the direction that does not lose names, so it says which are the published ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelbones.cli import main
from modelbones.families.registry import build, family_of, preset, read_config
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group
from tests.oracle.test_families_a import CASES

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle


def _written(name: str, folder: Path) -> dict[str, Any]:
    """Write a tiny `name` into `folder` and return its config, which transformers can read."""
    assert main(["synth", name, str(folder), "--shrink", "--fill", "random"]) == 0
    file = folder / "config.json"
    config: dict[str, Any] = json.loads(file.read_text())
    if config["model_type"] == "kimi_k2":
        # Kimi-K2's own word for DeepSeek-V3's architecture is none of transformers'.
        file.write_text(json.dumps({**config, "model_type": "deepseek_v3"}))
    return config


def _is_ignored(skeleton: Skeleton) -> Callable[[str], bool]:
    """The MTP layer, which transformers leaves alone."""
    if skeleton.mtp is None:
        return lambda name: False
    stem = skeleton.mtp.stem or f"{skeleton.prefix}layers.{skeleton.mtp.index}."
    return lambda name: name.startswith(stem)


@pytest.mark.parametrize(("name", "corrected"), CASES)
def test_a_tiny_checkpoint_of_our_names_loads_whole_and_equal(
    name: str, corrected: Callable[[str], str], tmp_path: Path
) -> None:
    from safetensors.torch import load_file
    from transformers.core_model_loading import revert_weight_conversion

    config = _written(name, tmp_path / "tiny")
    skeleton = build(read_config(tmp_path / "tiny"))
    is_ignored = _is_ignored(skeleton)
    auto = transformers.AutoModelForCausalLM
    if "vision_config" in config:
        auto = transformers.AutoModelForImageTextToText
    model, report = auto.from_pretrained(tmp_path / "tiny", output_loading_info=True, dtype=torch.bfloat16)

    # The tower is an open module, which synth does not write.
    towers = ("model.vision_tower.", "model.mm_projector.") if skeleton.open_prefixes else ("no tower",)
    assert [key for key in report["missing_keys"] if not key.startswith(towers)] == []
    assert [key for key in report["unexpected_keys"] if not is_ignored(key)] == []
    assert not report["mismatched_keys"]

    stored = {
        key: value for file in (tmp_path / "tiny").glob("*.safetensors") for key, value in load_file(file).items()
    }
    loaded = {corrected(key): value for key, value in revert_weight_conversion(model, model.state_dict()).items()}
    compared = set(stored) & set(loaded)
    ignored = {
        name
        for pattern in skeleton.patterns
        if pattern.group is Group.MTP or not pattern.required
        for name in pattern.names()
    }
    assert set(stored) - compared == set(stored) & ignored
    # Where transformers keeps no tensor of a class in fp32 it rounds those that are stored so: Kimi-Linear's.
    assert [key for key in compared if not torch.equal(loaded[key], stored[key].to(loaded[key].dtype))] == []


def test_the_inline_mtp_layer_of_our_names_loads_into_transformers_drafter(tmp_path: Path) -> None:
    """Its loader knows the layer by the release's index, 61, and refuses one that lacks a tensor."""
    from safetensors.torch import load_file
    from transformers.modeling_layers import MtpModel

    config = preset("deepseek-v3")
    family = family_of("deepseek_v3")
    assert family is not None
    assert family.tiny is not None
    (tmp_path / "config.json").write_text(json.dumps(family.tiny(config, config["num_hidden_layers"])))
    assert main(["synth", str(tmp_path / "config.json"), str(tmp_path / "tiny"), "--fill", "random"]) == 0
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "tiny", dtype=torch.bfloat16)
    drafter = MtpModel.from_pretrained(model)

    stored = {
        key: value for file in (tmp_path / "tiny").glob("*.safetensors") for key, value in load_file(file).items()
    }
    weights = drafter.state_dict()
    theirs = {"eh_proj": "eh_proj", "enorm": "enorm", "hnorm": "hnorm", "shared_head.norm": "post_norm"}
    for leaf, name in theirs.items():
        assert torch.equal(weights[f"layers.0.{name}.weight"], stored[f"model.layers.61.{leaf}.weight"])
    latent = "self_attn.kv_a_proj_with_mqa.weight"
    assert torch.equal(weights[f"layers.0.mtp_block.{latent}"], stored[f"model.layers.61.{latent}"])
