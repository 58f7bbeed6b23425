"""Names, shapes and re-saved configs of glm5_next against transformers, which no one here wrote.

Nothing is skipped: where torch or transformers is not installed these tests fail, and a plain
environment deselects them by their marker.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelbones.families.registry import build, read_config
from modelbones.skeleton import Skeleton
from modelbones.tensors import Group
from tests.published import GONE, edited, in_text, nested

pytestmark = pytest.mark.oracle

Shapes = dict[str, tuple[int, ...]]


def _theirs(config: dict[str, Any]) -> Shapes:
    """The names and shapes transformers would save, from a model on the meta device."""
    import torch
    from transformers import Glm5NextConfig, Glm5NextForConditionalGeneration
    from transformers.core_model_loading import revert_weight_conversion

    with torch.device("meta"):
        model = Glm5NextForConditionalGeneration(Glm5NextConfig.from_dict(config))
    state = revert_weight_conversion(model, model.state_dict())
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def _ours(skeleton: Skeleton) -> Shapes:
    """Trunk and vision of our contract; transformers has no MTP layer for this family."""
    patterns = [pattern for pattern in skeleton.patterns if pattern.group is not Group.MTP]
    return {name: pattern.shape for pattern in patterns for name in pattern.names()}


def _built(config: dict[str, Any]) -> Skeleton:
    return build(read_config(config))


def test_the_oracle_is_the_version_these_facts_were_measured_with() -> None:
    import transformers

    assert transformers.__version__ == "5.23.0"


def test_every_name_and_shape_at_full_size_is_transformers() -> None:
    theirs, ours = _theirs(nested()), _ours(_built(nested()))
    assert set(theirs) - set(ours) == set()
    assert set(ours) - set(theirs) == set()
    assert {name: shape for name, shape in ours.items() if theirs[name] != shape} == {}
    # 38,770 tensors of the release without the 889 of the MTP layer.
    assert len(theirs) == 38_770 - 889 == 37_881
    assert sum(".hc_" in name for name in theirs) == 270
    assert sum(name.startswith("model.visual.") for name in theirs) == 347


# No two widths alike, so that no formula is right by chance.
ODD: dict[str, Any] = {
    "vocab_size": 103,
    "pad_token_id": 1,
    "hidden_size": 68,
    "intermediate_size": 44,
    "num_hidden_layers": 9,
    "layer_types": ["linear_attention", "deepseek_sparse_attention", "linear_attention"] * 3,
    "linear_attn_config": {"num_heads": 3, "head_dim": 10, "short_conv_kernel_size": 5, "gate_lower_bound": -5.0},
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "q_lora_rank": 26,
    "kv_lora_rank": 14,
    "qk_head_dim": 22,
    "qk_nope_head_dim": 22,
    "v_head_dim": 18,
    "index_n_heads": 7,
    "index_head_dim": 16,
    "index_topk": 24,
    "index_kpool": 6,
    "indexer_types": ["full"] * 9,
    "mlp_layer_types": ["dense"] * 2 + ["sparse"] * 7,
    "first_k_dense_replace": 2,
    "n_routed_experts": 11,
    "n_shared_experts": 3,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 38,
    "hc_mult": 3,
}
ODD_VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 48,
    "num_heads": 4,
    "intermediate_size": 50,
    "in_channels": 3,
    "patch_size": 7,
    "temporal_patch_size": 2,
    "spatial_merge_size": 3,
    "out_hidden_size": 68,
    "projection_intermediate_size": 52,
    "image_size": 42,
}


def _odd(edits: dict[str, Any]) -> dict[str, Any]:
    vision = {f"vision_config.{key}": value for key, value in ODD_VISION.items()}
    return edited(edited(nested(), {**in_text(ODD), **vision}), edits)


SHARED = ["full", "full", "shared", "shared", "shared", "full", "full", "full", "full"]

VARIANTS: dict[str, dict[str, Any]] = {
    "odd widths": {},
    "attention bias": {"text_config.attention_bias": True},
    "no bias in the tower": {"vision_config.attention_bias": False},
    "shared indexers": {"text_config.indexer_types": SHARED},
    "shared indexers by pattern": {"text_config.indexer_types": GONE, "text_config.index_topk_pattern": "FFSSSFFFF"},
    "shared indexers by frequency": {
        "text_config.indexer_types": GONE,
        "text_config.index_topk_freq": 3,
        "text_config.index_skip_topk_offset": 2,
    },
    "one shared expert": {"text_config.n_shared_experts": 1},
    "all dense": {"text_config.mlp_layer_types": ["dense"] * 9, "text_config.first_k_dense_replace": 9},
    "all routed": {"text_config.mlp_layer_types": ["sparse"] * 9, "text_config.first_k_dense_replace": 0},
    "two streams": {"text_config.hc_mult": 2},
}


@pytest.mark.parametrize("what", VARIANTS)
def test_every_name_and_shape_of_a_small_odd_model_is_transformers(what: str) -> None:
    config = _odd(VARIANTS[what])
    assert _ours(_built(config)) == _theirs(config)


def test_a_tied_head_is_what_transformers_does_not_save_twice() -> None:
    config = _odd({"tie_word_embeddings": True, "text_config.tie_word_embeddings": True})
    assert "lm_head.weight" not in _ours(_built(config))
    theirs = _theirs(config)
    theirs.pop("lm_head.weight", None)  # the same tensor under its second name, dropped when it is written
    assert _ours(_built(config)) == theirs


@pytest.mark.parametrize("what", ["published", *VARIANTS])
def test_a_config_saved_by_transformers_reads_to_an_equal_skeleton(what: str, tmp_path: Path) -> None:
    from transformers import Glm5NextConfig

    config = nested() if what == "published" else _odd(VARIANTS[what])
    typed = Glm5NextConfig.from_dict(config)
    typed.save_pretrained(tmp_path)
    text = json.loads((tmp_path / "config.json").read_text())["text_config"]
    assert "indexed_attention" in text["layer_types"]
    assert "deepseek_sparse_attention" not in text["layer_types"]
    assert build(read_config(tmp_path)) == _built(config)
    assert _built(typed.to_dict()) == _built(config)


def test_a_flat_file_is_read_as_transformers_reads_it() -> None:
    from transformers import Glm5NextConfig

    flat = {**nested()["text_config"], "model_type": "glm5_next"}
    theirs = Glm5NextConfig.from_dict(flat).text_config
    ours = _built(flat)
    assert ours.hidden_size == theirs.hidden_size == 4096
    assert len(ours.layers) == theirs.num_hidden_layers
    assert [layer.index for layer in ours.layers if layer.mixer.name == "DSA"] == [
        index for index, word in enumerate(theirs.layer_types) if word == "indexed_attention"
    ]


@pytest.mark.parametrize("what", ["odd widths", "shared indexers", "attention bias"])
def test_a_checkpoint_of_our_names_and_shapes_loads_without_a_remark(what: str, tmp_path: Path) -> None:
    """The other direction: what is written from our contract is all that transformers asks for."""
    import torch
    from safetensors.torch import save_file
    from transformers import Glm5NextForConditionalGeneration

    config = _odd({**VARIANTS[what], "text_config.num_nextn_predict_layers": 0})
    generator = torch.Generator().manual_seed(7)
    tensors = {name: torch.randn(shape, generator=generator) / 50 for name, shape in _ours(_built(config)).items()}
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model, remarks = Glm5NextForConditionalGeneration.from_pretrained(
        tmp_path, dtype=torch.float32, output_loading_info=True
    )
    found = {key: set(remarks[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys")}
    assert found == {"missing_keys": set(), "unexpected_keys": set(), "mismatched_keys": set()}
    model.save_pretrained(tmp_path / "again")
    again = build(read_config(tmp_path / "again"))
    assert again.layers == _built(config).layers
