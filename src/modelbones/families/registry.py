"""Which family reads which `model_type`, and the two doors to them: `read_config`, `build`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from modelbones.config import MISSING, Ledger, Section, shown
from modelbones.config_file import load_config, locate_config
from modelbones.errors import ConfigError, Fault, UnknownArchitectureError
from modelbones.families.family import Family
from modelbones.families.model_config import ModelConfig
from modelbones.skeleton import Skeleton

_FAMILY_OF = {
    "glm5_next": "glm5_next",
    "glm5_next_text": "glm5_next",
    "kimi_linear": "kimi_linear",
    "deepseek_v2": "deepseek_v2",
    "deepseek_v3": "deepseek_v3",
    "kimi_k2": "deepseek_v3",
    "kimi_k25": "kimi_k25",
    "deepseek_v32": "deepseek_v32",
    "deepseek_v4": "deepseek_v4",
    "glm_moe_dsa": "glm_moe_dsa",
    "glm4_moe_lite": "glm4_moe_lite",
    "llama": "llama",
    "qwen3_next": "qwen3_next",
    "qwen3_5": "qwen3_5",
    "qwen3_5_text": "qwen3_5",
    "qwen3_5_moe": "qwen3_5_moe",
    "qwen3_5_moe_text": "qwen3_5_moe",
    "nemotron_h": "nemotron_h",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3_moe",
    "mistral": "mistral",
    "mixtral": "mixtral",
    "glm4_moe": "glm4_moe",
    "gpt_oss": "gpt_oss",
    "gemma3": "gemma3",
    "gemma3_text": "gemma3",
}
"""`model_type` -> module in `modelbones.families`; each is imported when it is asked for."""

MOST_TENSORS = 4_000_000
"""Contracts are told name by name up to here; the largest releases have some 100,000 tensors."""
_STORED_DECIDES = "what is stored decides in `check`"
"""The source families give for an absent count of MTP layers."""

_PRESETS = {
    "glm-5.3-flash": "glm_5_3_flash",
    "kimi-linear-48b": "kimi_linear_48b",
    "deepseek-coder-v2": "deepseek_coder_v2",
    "deepseek-v3": "deepseek_v3",
    "kimi-k2": "kimi_k2",
    "kimi-k2.5": "kimi_k2_5",
    "deepseek-v3.2": "deepseek_v3_2",
    "deepseek-v4-flash": "deepseek_v4_flash",
    "glm-5.2": "glm_5_2",
    "glm-4.7-flash": "glm_4_7_flash",
    "llama-3.1-8b": "llama_3_1_8b",
    "qwen3-next-80b-a3b": "qwen3_next_80b_a3b",
    "qwen3.5-27b": "qwen3_5_27b",
    "qwen3.5-35b-a3b": "qwen3_5_35b_a3b",
    "nemotron-3-nano-30b-a3b": "nemotron_3_nano_30b_a3b",
    "qwen2.5-7b": "qwen2_5_7b",
    "qwen3-8b": "qwen3_8b",
    "qwen3-30b-a3b": "qwen3_30b_a3b",
    "mistral-7b": "mistral_7b",
    "mixtral-8x7b": "mixtral_8x7b",
    "glm-4.5-air": "glm_4_5_air",
    "gpt-oss-120b": "gpt_oss_120b",
    "gemma-3-4b": "gemma_3_4b",
}
"""Preset name -> module in `modelbones.families.presets`."""


def model_types() -> tuple[str, ...]:
    """Every `model_type` some family reads, sorted."""
    return tuple(sorted(_FAMILY_OF))


def preset_names() -> tuple[str, ...]:
    """Every built-in preset, sorted."""
    return tuple(sorted(_PRESETS))


def preset(name: str) -> dict[str, Any]:
    """The raw config of a built-in preset; KeyError for a name that is none."""
    config: dict[str, Any] = deepcopy(import_module(f"modelbones.families.presets.{_PRESETS[name]}").CONFIG)
    return config


def presets_of(family: Family) -> tuple[str, ...]:
    """The presets `family` reads, sorted."""
    return tuple(name for name in preset_names() if preset(name)["model_type"] in family.model_types)


@cache
def family_of(model_type: str) -> Family | None:
    """The family that reads `model_type`, None when none does."""
    module = _FAMILY_OF.get(model_type)
    if module is None:
        return None
    family: Family = import_module(f"modelbones.families.{module}").FAMILY
    return family


def families() -> tuple[Family, ...]:
    """Every family, in registry order."""
    found = (family_of(model_type) for model_type in dict.fromkeys(_FAMILY_OF.values()))
    return tuple(family for family in found if family is not None)


def read_config(source: str | PathLike[str] | Mapping[str, Any]) -> ModelConfig:
    """The typed config of a mapping, a `config.json`, a directory that holds one, or a preset.

    An existing path wins over a preset of the same name.

    Raises:
        SourceError: The file cannot be read or holds no JSON object.
        ConfigError: Everything wrong with the config, at once.
        UnknownArchitectureError: No family reads its top-level `model_type`.
    """
    if isinstance(source, Mapping):
        return read_mapping(source, place="<mapping>")
    path = Path(source)
    if str(source) in _PRESETS and not path.exists():
        return read_mapping(preset(str(source)), place=str(source))
    file = locate_config(path)
    return read_mapping(load_config(file), place=str(file))


def read_mapping(values: Mapping[str, Any], *, place: str) -> ModelConfig:
    """The typed config of a raw one; `place` names it in messages."""
    model_type = values.get("model_type")
    if not isinstance(model_type, str):
        found = shown(MISSING if model_type is None else model_type)
        fault = Fault("model_type", found, f"one of {', '.join(model_types())}")
        raise ConfigError(place=place, faults=(fault,))
    family = family_of(model_type)
    if family is None:
        raise UnknownArchitectureError(
            place=place, model_type=model_type[:80], known=model_types(), hint=_closest(model_type)
        )
    config: ModelConfig = family.read(Section(values, "", Ledger(place)))
    return config


def declaring_mtp(config: ModelConfig) -> ModelConfig | None:
    """`config` with one MTP layer declared; None where it says itself how many there are."""
    path = next((item.path for item in config.declared.assumed if item.source == _STORED_DECIDES), None)
    if path is None:
        return None
    values: dict[str, Any] = dict(config.declared.raw)
    section = values
    *stems, key = path.split(".")
    for stem in stems:
        section[stem] = section = dict(section[stem])
    section[key] = 1
    try:
        return read_mapping(values, place=config.declared.place)
    except ConfigError:
        # Declared, the layer would need keys that this config does not have either.
        return None


def build(config: ModelConfig) -> Skeleton:
    """The skeleton of a typed config; sizes that no release could have are refused.

    Raises:
        ConfigError: It asks for more tensors than any checkpoint's index may name.
    """
    family = family_of(config.model_type)
    if family is None:
        raise UnknownArchitectureError(
            place=config.declared.place,
            model_type=config.model_type,
            known=model_types(),
            hint=_closest(config.model_type),
        )
    skeleton = family.build(config)
    asked = sum(pattern.count for pattern in skeleton.patterns)
    if asked > MOST_TENSORS:
        fault = Fault("layers and experts", f"{asked:,} tensors", f"at most {MOST_TENSORS:,} in all")
        raise ConfigError(place=config.declared.place, faults=(fault,))
    return skeleton


def _closest(model_type: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(model_type, model_types(), n=1, cutoff=0.5)
    reading = f"the closest by name is {near[0]}; " if near else ""
    return f"{reading}a family is one file of parts and one line in the registry (docs/adding-a-family.md)"
