"""The published GLM-5.3-Flash config in the forms the tests read: nested, flat, edited, saved again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from modelbones.families.registry import preset

GONE = object()
"""As a value of `edited`: take the key out."""

SPARSE = list(range(3, 45, 4))
"""The 11 sparse layers: 3, 7, ..., 43."""
RECURRENT = [index for index in range(45) if index % 4 != 3]
"""The 34 KDA layers."""


def nested() -> dict[str, Any]:
    """The published config, text sizes under `text_config`."""
    return deepcopy(preset("glm-5.3-flash"))


def flat() -> dict[str, Any]:
    """Its text sizes at top level, as text-only files hold them."""
    return {**nested()["text_config"], "model_type": "glm5_next"}


def edited(config: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """`config` with the values at dotted paths replaced, or taken out where `GONE`."""
    config = deepcopy(config)
    for path, value in edits.items():
        *stems, key = path.split(".")
        section = config
        for stem in stems:
            section = section[stem]
        if value is GONE:
            del section[key]
        else:
            section[key] = value
    return config


def in_text(edits: dict[str, Any]) -> dict[str, Any]:
    """The same edits one level down, in `text_config`."""
    return {f"text_config.{path}": value for path, value in edits.items()}


def saved_again() -> dict[str, Any]:
    """What transformers 5.23 writes when it saves this config: more keys, its own word for sparse layers."""
    config = nested()
    config["transformers_version"] = "5.23.0"
    config.update(image_token_id=154854, video_token_id=154855, image_start_token_id=154830)
    text = config["text_config"]
    text["layer_types"] = ["indexed_attention" if index in SPARSE else "linear_attention" for index in range(45)]
    text.update(
        bos_token_id=None,
        eos_token_id=[154820, 154827, 154829],
        head_dim=0,
        linear_conv_kernel_dim=4,
        linear_head_dim=128,
        linear_lower_bound=-5.0,
        linear_num_heads=64,
        use_cache=True,
    )
    config["vision_config"]["rope_parameters"] = {"rope_theta": 10000.0, "rope_type": "axial"}
    return config
