"""A model's tensors saved as they are called in memory, not by save_pretrained, which maps them back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones.cli import main
from tests.audit.stores import tiny_config

pytestmark = pytest.mark.oracle


def test_a_state_dict_saved_raw_is_mapped_and_lacks_only_the_mtp_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import Glm5NextConfig, Glm5NextForConditionalGeneration

    model = Glm5NextForConditionalGeneration(Glm5NextConfig.from_dict(tiny_config()))
    state = {
        name: tensor.detach().clone().contiguous() for name, tensor in model.to(torch.float32).state_dict().items()
    }
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(tiny_config()))
    assert main(["check", str(tmp_path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = [(each["severity"], each["code"], each["name"]) for each in report["findings"]]
    assert found == [("error", "group_absent", "mtp"), ("warning", "renamed", "trunk")]
    assert report["groups"]["trunk"]["dialect"] == "transformers"
    assert report["groups"]["vision"]["dialect"] == "published"
    # Five layers, four of them KDA, two of them routed.
    kinds = {"forget_gate": 4 * 4, "fused_conv": 4, "hyper_connection": 5 * 6, "packed_experts": 2 * 2}
    assert report["findings"][1]["detail"]["kinds"] == kinds
    assert report["tensors"] == len(state)
    assert report["parameters"] == sum(tensor.numel() for tensor in state.values())
