"""The attention, GDN and Mamba-2 families' state against transformers' cache classes, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modelbones.dtypes import DType
from modelbones.engines.transformers import CacheClass, layer_bytes
from modelbones.families.registry import build, family_of, preset, read_config
from modelbones.families.shrinking import shortest_stack
from tests.oracle.test_families_b import PRESETS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle


def _tiny(name: str) -> dict[str, Any]:
    """The tiny form of a preset, of a wrapper its text model's own."""
    config = preset(name)
    family = family_of(config["model_type"])
    assert family is not None
    assert family.tiny is not None
    small = family.tiny(config, shortest_stack(build(read_config(config)).layers))
    return small.get("text_config", small)


def _model(config: dict[str, Any], folder: Path) -> Any:
    """A random model as transformers loads it."""
    words = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    torch.manual_seed(0)
    typed = transformers.AutoConfig.for_model(config["model_type"], **words)
    transformers.AutoModelForCausalLM.from_config(typed, dtype=torch.bfloat16).save_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for inner in value for tensor in _tensors(inner)] if isinstance(value, list | tuple) else []


def _held(layer: Any) -> int:
    """Bytes of every state tensor in one cache layer."""
    states = [tensor for key, value in vars(layer).items() if not key.startswith("_") for tensor in _tensors(value)]
    return sum(t.numel() * t.element_size() for t in states if t.dtype in (torch.bfloat16, torch.float32))


@pytest.mark.parametrize("name", PRESETS)
def test_each_layer_of_a_dynamic_cache_holds_what_is_declared(name: str, tmp_path: Path) -> None:
    config = _tiny(name)
    model, skeleton = _model(config, tmp_path), build(read_config(config))
    cache = transformers.DynamicCache(config=model.config)
    tokens = torch.randint(3, 200, (1, 20))
    with torch.no_grad():
        # Windows are 16 tokens: before they are full, on the way, and past.
        for start, end in [(0, 6), (6, 7), (7, 15), (15, 16), (16, 17), (17, 20)]:
            model(tokens[:, start:end], past_key_values=cache, use_cache=True)
            ours = [layer_bytes(layer, tokens=end, dtype=DType.BF16) for layer in skeleton.layers]
            assert [_held(layer) for layer in cache.layers] == ours, end


@pytest.mark.parametrize("name", PRESETS)
def test_each_layer_of_a_static_cache_holds_what_is_declared(name: str, tmp_path: Path) -> None:
    config = _tiny(name)
    model, skeleton = _model(config, tmp_path), build(read_config(config))
    cache = transformers.StaticCache(config=model.config, max_cache_len=32)
    with torch.no_grad():
        model(torch.randint(3, 200, (1, 5)), past_key_values=cache, use_cache=True)
    sizes = {"tokens": 5, "dtype": DType.BF16, "cache": CacheClass.STATIC, "max_cache_len": 32}
    assert [_held(layer) for layer in cache.layers] == [layer_bytes(layer, **sizes) for layer in skeleton.layers]
