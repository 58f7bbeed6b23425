"""The load direction: a tiny checkpoint written from our names, loaded by transformers 5.23 with equal weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones.cli import main
from modelbones.families.registry import build, family_of, preset, read_config
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group
from tests.oracle.test_families_b import PRESETS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle


def _mtp(skeleton: Skeleton) -> set[str]:
    """The MTP tensors, which transformers leaves alone."""
    return {name for pattern in skeleton.patterns if pattern.group is Group.MTP for name in pattern.names()}


@pytest.mark.parametrize("name", PRESETS)
def test_a_tiny_checkpoint_of_our_names_loads_whole_and_equal(name: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from transformers.core_model_loading import revert_weight_conversion

    assert main(["synth", name, str(tmp_path / "tiny"), "--shrink", "--fill", "random"]) == 0
    config = json.loads((tmp_path / "tiny" / "config.json").read_text())
    is_wrapper = "vision_config" in config
    auto = transformers.AutoModelForImageTextToText if is_wrapper else transformers.AutoModelForCausalLM
    model, report = auto.from_pretrained(tmp_path / "tiny", output_loading_info=True, dtype=torch.bfloat16)
    skeleton = build(read_config(tmp_path / "tiny"))
    towers = ("model.visual.", "model.vision_tower.", "model.multi_modal_projector.") if is_wrapper else ()
    mtp_stem = "" if skeleton.mtp is None else skeleton.mtp.stem or f"{skeleton.prefix}layers.{skeleton.mtp.index}."

    # The towers are open modules, which synth does not write.
    assert [key for key in report["missing_keys"] if not key.startswith(towers or ("-",))] == []
    assert [key for key in report["unexpected_keys"] if not mtp_stem or not key.startswith(mtp_stem)] == []
    assert not report["mismatched_keys"]

    stored = {
        key: value for file in (tmp_path / "tiny").glob("*.safetensors") for key, value in load_file(file).items()
    }
    # Stacked experts are split again when transformers saves, so they are compared as it holds them.
    loaded = {**model.state_dict(), **revert_weight_conversion(model, model.state_dict())}
    compared = set(stored) & set(loaded)
    assert set(stored) - compared == set(stored) & _mtp(skeleton)
    assert all(torch.equal(loaded[key].float(), stored[key].float()) for key in compared)


def test_glm_4_5_air_s_inline_mtp_layer_loads_into_transformers_drafter(tmp_path: Path) -> None:
    """Its loader knows the layer by the release's index, 46."""
    from safetensors.torch import load_file
    from transformers.modeling_layers import MtpModel

    config = preset("glm-4.5-air")
    family = family_of("glm4_moe")
    assert family is not None
    assert family.tiny is not None
    (tmp_path / "config.json").write_text(json.dumps(family.tiny(config, 46)))
    assert main(["synth", str(tmp_path / "config.json"), str(tmp_path / "tiny"), "--fill", "random"]) == 0
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "tiny", dtype=torch.bfloat16)
    weights = MtpModel.from_pretrained(model).state_dict()
    stored = {k: v for file in (tmp_path / "tiny").glob("*.safetensors") for k, v in load_file(file).items()}
    theirs = {"eh_proj": "eh_proj", "enorm": "enorm", "hnorm": "hnorm", "shared_head.norm": "post_norm"}
    for leaf, name in theirs.items():
        assert torch.equal(weights[f"layers.0.{name}.weight"], stored[f"model.layers.46.{leaf}.weight"])
    for leaf in ("self_attn.q_proj.weight", "self_attn.k_proj.bias", "mlp.shared_experts.up_proj.weight"):
        assert torch.equal(weights[f"layers.0.mtp_block.{leaf}"], stored[f"model.layers.46.{leaf}"])


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("use_diff", [True, False])
def test_a_config_saved_again_by_transformers_is_the_same_model(name: str, use_diff: bool) -> None:
    config = preset(name)
    words = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    typed = transformers.AutoConfig.for_model(config["model_type"], **words)
    again = build(read_config(json.loads(typed.to_json_string(use_diff=use_diff))))
    assert again.patterns == build(read_config(config)).patterns
    assert again.layers == build(read_config(config)).layers
