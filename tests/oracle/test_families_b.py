"""Attention, GDN and Mamba-2 families at full size, against transformers 5.23 on the meta device.

`revert_weight_conversion` gives the names transformers would save; where it writes another layout
than the published one, the published one is pinned here with the reason.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from modelbones.families.registry import build, preset, read_config
from modelbones.tensors import Group

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle

PRESETS = (
    "llama-3.1-8b",
    "qwen3-next-80b-a3b",
    "qwen3.5-27b",
    "qwen3.5-35b-a3b",
    "nemotron-3-nano-30b-a3b",
    "qwen2.5-7b",
    "qwen3-8b",
    "qwen3-30b-a3b",
    "mistral-7b",
    "mixtral-8x7b",
    "glm-4.5-air",
    "gpt-oss-120b",
    "gemma-3-4b",
)
Shapes = dict[str, tuple[int, ...]]


def _saved(config: dict[str, Any]) -> Shapes:
    """Every tensor transformers saves for `config`, by the name it saves it under."""
    from transformers.core_model_loading import revert_weight_conversion

    words = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    typed = transformers.AutoConfig.for_model(config["model_type"], **words)
    is_wrapper = "vision_config" in config
    auto = transformers.AutoModelForImageTextToText if is_wrapper else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(typed)
    saved = revert_weight_conversion(model, model.state_dict())
    # A tied head is one tensor with the embedding, which is what gets stored.
    tied = "lm_head.weight" if model.config.tie_word_embeddings else None
    return {name: tuple(value.shape) for name, value in saved.items() if tied is None or not name.endswith(tied)}


def _ours(config: dict[str, Any]) -> Shapes:
    """Every required trunk tensor of our contract."""
    return {
        name: pattern.shape
        for pattern in build(read_config(config)).patterns
        if pattern.group is Group.TRUNK and pattern.required
        for name in pattern.names()
    }


def _stacked(saved: Shapes) -> Shapes:
    """transformers splits the experts of `qwen3_5_moe` when it saves; the published bf16 files stack them.

    Source: sgl-project/sglang-jax issue 1251, from the release's index: two tensors a layer, no `.weight`.
    """
    split = re.compile(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")
    kept, counts = {}, {}
    for name, shape in saved.items():
        match = split.fullmatch(name)
        if match is None:
            kept[name] = shape
            continue
        stem, number, which = match.groups()
        counts[stem] = max(counts.get(stem, 0), int(number) + 1)
        rows, columns = shape
        leaf = f"{stem}.down_proj" if which == "down" else f"{stem}.gate_up_proj"
        kept[leaf] = (0, rows, columns) if which == "down" else (0, 2 * rows, columns)
    return {
        name: (counts[name.rpartition(".")[0]], *shape[1:]) if shape[0] == 0 else shape for name, shape in kept.items()
    }


CORRECTED = {"qwen3.5-35b-a3b": _stacked}


@pytest.mark.parametrize("name", PRESETS)
def test_every_trunk_name_and_shape_is_the_one_transformers_saves(name: str) -> None:
    config = preset(name)
    saved = CORRECTED.get(name, dict)(_saved(config))
    towers = tuple(prefix for prefix, _ in build(read_config(config)).open_prefixes)
    assert any(stored.startswith(towers) for stored in saved) == bool(towers)
    assert _ours(config) == {
        stored: shape for stored, shape in saved.items() if not towers or not stored.startswith(towers)
    }
