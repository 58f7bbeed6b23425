"""Which preset a log's model name is: by the repositories the presets' configs were published in."""

from __future__ import annotations

import re

REPOSITORIES = {
    "deepseek-ai/DeepSeek-Coder-V2-Instruct": "deepseek-coder-v2",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "deepseek-ai/DeepSeek-V3.2-Exp": "deepseek-v3.2",
    "deepseek-ai/DeepSeek-V4-Flash": "deepseek-v4-flash",
    "google/gemma-3-4b-it": "gemma-3-4b",
    "zai-org/GLM-4.5-Air": "glm-4.5-air",
    "zai-org/GLM-4.7-Flash": "glm-4.7-flash",
    "zai-org/GLM-5.2": "glm-5.2",
    "zai-org/GLM-5.3": "glm-5.2",
    "zai-org/GLM-5.3-Flash": "glm-5.3-flash",
    "zai-org/GLM-5.3-Flash-BF16": "glm-5.3-flash",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "moonshotai/Kimi-K2-Instruct": "kimi-k2",
    "moonshotai/Kimi-K2.5": "kimi-k2.5",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": "kimi-linear-48b",
    "meta-llama/Llama-3.1-8B": "llama-3.1-8b",
    "mistralai/Mistral-7B-v0.1": "mistral-7b",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3-nano-30b-a3b",
    "Qwen/Qwen2.5-7B": "qwen2.5-7b",
    "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen/Qwen3.5-27B": "qwen3.5-27b",
    "Qwen/Qwen3.5-35B-A3B": "qwen3.5-35b-a3b",
    "Qwen/Qwen3-8B": "qwen3-8b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "qwen3-next-80b-a3b",
}
"""Repository -> preset. Source: the first line of each preset's module."""
_BY_REPOSITORY = {repository.lower(): preset for repository, preset in REPOSITORIES.items()}
_CACHED = re.compile(r"models--([^/\\]{1,96}?)--([^/\\]{1,96})")


def preset_of(name: str) -> str | None:
    """The preset `name` is: one of the repositories above, or a copy in the Hub's cache.

    A quantised copy under another owner may have other sizes, so its name is none.

    >>> preset_of("/root/.cache/hub/models--zai-org--GLM-5.3-Flash/snapshots/eb9e")
    'glm-5.3-flash'
    """
    cached = _CACHED.search(name)
    repository = f"{cached[1]}/{cached[2]}" if cached else name
    return _BY_REPOSITORY.get(repository.lower())
