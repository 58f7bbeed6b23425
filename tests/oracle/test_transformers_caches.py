"""The declared layout of transformers' caches, against the real cache classes of tiny models, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modelbones.dtypes import DType
from modelbones.engines.transformers import CacheClass, layer_bytes
from modelbones.families.registry import build, family_of, preset, read_config
from modelbones.families.shrinking import shortest_stack
from modelbones.skeleton import Skeleton

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle

NAMES = (
    "glm-5.3-flash",
    "kimi-linear-48b",
    "deepseek-coder-v2",
    "deepseek-v3",
    "kimi-k2",
    "deepseek-v3.2",
    "glm-5.2",
    "glm-4.7-flash",
    "deepseek-v4-flash",
)


def _tiny(name: str) -> dict[str, Any]:
    config = preset(name)
    family = family_of(config["model_type"])
    assert family is not None
    assert family.tiny is not None
    return family.tiny(config, shortest_stack(build(read_config(config)).layers))


def _model(config: dict[str, Any], folder: Path) -> Any:
    """A random model as transformers loads it: what a class keeps in fp32 it keeps only when loading."""
    words = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    # Kimi-K2's own word for DeepSeek-V3's architecture is none of transformers'.
    model_type = {"kimi_k2": "deepseek_v3"}.get(config["model_type"], config["model_type"])
    torch.manual_seed(0)
    typed = transformers.AutoConfig.for_model(model_type, **words)
    auto = transformers.AutoModelForCausalLM
    if "vision_config" in config and model_type == "glm5_next":
        # Only the multimodal class has a head.
        auto = transformers.AutoModelForImageTextToText
    auto.from_config(typed, dtype=torch.bfloat16).save_pretrained(folder)
    return auto.from_pretrained(folder, dtype=torch.bfloat16).eval()


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for inner in value.values() for tensor in _tensors(inner)]
    return [tensor for inner in value for tensor in _tensors(inner)] if isinstance(value, list | tuple) else []


def _held(layer: Any) -> int:
    """Bytes of the states in one cache layer, a tensor that stands under two names once."""
    distinct = {
        (tensor.data_ptr(), tuple(tensor.shape)): tensor
        for key, value in vars(layer).items()
        if not key.startswith("_")
        for tensor in _tensors(value)
        if tensor.dtype in (torch.bfloat16, torch.float32) and tensor.numel()
    }
    return sum(tensor.numel() * tensor.element_size() for tensor in distinct.values())


def _ours(skeleton: Skeleton, tokens: int, **kind: Any) -> list[int]:
    return [layer_bytes(layer, tokens=tokens, dtype=DType.BF16, **kind) for layer in skeleton.layers]


@pytest.mark.parametrize("name", NAMES)
def test_each_layer_of_a_dynamic_cache_holds_what_its_layout_says(name: str, tmp_path: Path) -> None:
    config = _tiny(name)
    model, skeleton = _model(config, tmp_path), build(read_config(config))
    cache = transformers.DynamicCache(config=model.config.get_text_config())
    tokens = torch.randint(3, 200, (1, 141))
    with torch.no_grad():
        # A prompt, then one token at a time over the end of two pools of four and of one of 128.
        for start, end in [(0, 6), (6, 7), (7, 126), *((n, n + 1) for n in range(126, 141))]:
            model(tokens[:, start:end], past_key_values=cache, use_cache=True)
            assert [_held(layer) for layer in cache.layers] == _ours(skeleton, end), end


@pytest.mark.parametrize("name", [name for name in NAMES if name != "deepseek-v4-flash"])
def test_each_layer_of_a_static_cache_holds_what_its_layout_says(name: str, tmp_path: Path) -> None:
    config = _tiny(name)
    model, skeleton = _model(config, tmp_path), build(read_config(config))
    cache = transformers.StaticCache(config=model.config.get_text_config(), max_cache_len=32)
    with torch.no_grad():
        model(torch.randint(3, 200, (1, 5)), past_key_values=cache, use_cache=True)
    assert [_held(layer) for layer in cache.layers] == _ours(skeleton, 5, cache=CacheClass.STATIC, max_cache_len=32)


def test_transformers_has_no_static_cache_for_compressing_layers(tmp_path: Path) -> None:
    model = _model(_tiny("deepseek-v4-flash"), tmp_path)
    with pytest.raises(KeyError):
        transformers.StaticCache(config=model.config, max_cache_len=32)
