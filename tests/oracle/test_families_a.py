"""Names and shapes at full size, against transformers 5.23 on the meta device.

`revert_weight_conversion` gives the names transformers would save; where its reverse renames are
not the published names, the corrected ones are pinned here with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from modelbones.families.registry import build, preset, read_config
from modelbones.tensors import Group

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle


def _saved(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every tensor transformers saves for `config`, by the name it saves it under."""
    from transformers.core_model_loading import revert_weight_conversion

    model_type = config["model_type"]
    words = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    if model_type == "kimi_k2":
        # Kimi-K2's own word for DeepSeek-V3's architecture is none of transformers'.
        model_type = "deepseek_v3"
    typed = transformers.AutoConfig.for_model(model_type, **words)
    auto = transformers.AutoModelForCausalLM
    if "vision_config" in config:
        auto = transformers.AutoModelForImageTextToText
    with torch.device("meta"):
        model = auto.from_config(typed)
    return {name: tuple(value.shape) for name, value in revert_weight_conversion(model, model.state_dict()).items()}


def _ours(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every required trunk tensor of our contract."""
    patterns = build(read_config(config)).patterns
    return {
        name: pattern.shape
        for pattern in patterns
        if pattern.group is Group.TRUNK and pattern.required
        for name in pattern.names()
    }


def _kimi_dense(name: str) -> str:
    """transformers renames `mlp` to `block_sparse_moe` on every layer when it saves.

    The published checkpoint, and transformers' own loading, call the dense layer's `mlp`.
    """
    return re.sub(r"\.block_sparse_moe\.((?:gate|up|down)_proj\.)", r".mlp.\1", name)


def _kimi_blocks(name: str) -> str:
    """The vision tower's rename of `layers` to `blocks` is applied to the text model too.

    And the projector's norm keeps transformers' own prefix, which its other tensors lose.
    """
    return name.replace("language_model.model.blocks.", "language_model.model.layers.").removeprefix("model.")


def _v4(name: str) -> str:
    """The published files have no `model.` in front, and other names at both ends of the stack.

    `attn.kv_norm` is also what the loading rename of `norm` makes of the compressors' norms, so that
    its reverse turns the attention's own into `attn.norm`.
    """
    name = name.removeprefix("model.").replace("embed_tokens.", "embed.").replace("hc_head.hc_", "hc_head_")
    return name.replace(".attn.norm.", ".attn.kv_norm.")


def _as_it_is(name: str) -> str:
    return name


CASES = [
    ("kimi-linear-48b", _kimi_dense),
    ("deepseek-coder-v2", _as_it_is),
    ("deepseek-v3", _as_it_is),
    ("kimi-k2", _as_it_is),
    ("kimi-k2.5", _kimi_blocks),
    ("deepseek-v3.2", _as_it_is),
    ("glm-5.2", _as_it_is),
    ("glm-4.7-flash", _as_it_is),
    ("deepseek-v4-flash", _v4),
]
"""Presets, with what makes a published name of a saved one."""


@pytest.mark.parametrize(("name", "corrected"), CASES)
def test_every_trunk_name_and_shape_is_the_one_transformers_saves(name: str, corrected: Callable[[str], str]) -> None:
    config = preset(name)
    open_prefixes = tuple(prefix for prefix, _ in build(read_config(config)).open_prefixes)
    saved = {corrected(stored): shape for stored, shape in _saved(config).items()}
    assert any(stored.startswith(open_prefixes) for stored in saved) == bool(open_prefixes)
    judged = {
        stored: shape for stored, shape in saved.items() if not open_prefixes or not stored.startswith(open_prefixes)
    }
    assert _ours(config) == judged
