from __future__ import annotations

from typing import Any

from hypothesis import given

from modelbones.families.registry import build, preset, read_config
from tests.families.mutating import mutants, reads_or_refuses
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("deepseek-coder-v2")
LITE = edited(
    CONFIG,
    {
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "moe_intermediate_size": 1408,
        "n_routed_experts": 64,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "num_hidden_layers": 27,
        "q_lora_rank": None,
    },
)
"""deepseek-ai/DeepSeek-V2-Lite, from its config.json."""


def test_the_236b_has_60_layers_of_one_latent_row() -> None:
    skeleton = build(read_config(CONFIG))
    assert skeleton.budget().per_token() == 60 * (512 + 64) * 2 == 69_120
    assert sum(p.numel * p.count for p in skeleton.patterns) == 235_741_434_880


def test_the_lite_has_no_low_rank_query_and_15_706_484_224_parameters() -> None:
    skeleton = build(read_config(LITE))
    assert "model.layers.26.self_attn.q_proj.weight" in skeleton.structural_tensor_set()
    assert sum(p.numel * p.count for p in skeleton.patterns) == 15_706_484_224  # "16B"
    assert skeleton.budget().per_token() == 27 * 576 * 2 == 31_104


def test_two_shared_experts_are_one_mlp_of_twice_the_width_and_the_router_has_no_bias() -> None:
    patterns = {p.name: p for p in build(read_config(CONFIG)).patterns}
    assert patterns["model.layers.{layer}.mlp.shared_experts.up_proj.weight"].shape == (3072, 5120)
    assert not any("e_score_correction_bias" in name for name in patterns)


def test_an_absent_query_rank_is_refused_since_libraries_fill_in_1536() -> None:
    assert faults(edited(CONFIG, {"q_lora_rank": GONE})) == [
        "q_lora_rank: found missing; expected a positive integer, or null where one matrix makes the query"
    ]


@given(mutants(LITE))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
