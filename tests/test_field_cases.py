"""Public bug reports as small inputs with the right answer; the letter is the kind of case.

A: what a checkpoint stores. B: what a sequence costs. Other cases stand beside the code they
are about: tests/audit, tests/families, tests/live, tests/checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones import build, read_config
from modelbones.cli import main
from modelbones.engines.vllm import KvDtype, SpecMethod, VllmSettings, plan_cache
from modelbones.engines.vllm.states import Kind
from modelbones.families.registry import preset
from modelbones.families.stacks.shrink import tiny


def test_a13_a_trunk_without_its_declared_mtp_layer_is_one_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """vllm-project/vllm pull 35548: a GLM-5 export dropped layer 78, and drafting read uninitialised memory."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**tiny(preset("glm-5.2"), 5), "num_nextn_predict_layers": 0}))
    assert main(["synth", str(config), str(tmp_path / "made"), "--fill", "zeros"]) == 0
    declared = json.loads((tmp_path / "made/config.json").read_text()) | {"num_nextn_predict_layers": 1}
    (tmp_path / "made/config.json").write_text(json.dumps(declared))
    capsys.readouterr()
    assert main(["check", str(tmp_path / "made"), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["groups"]["trunk"]["verdict"] == "complete"
    assert report["groups"]["mtp"]["verdict"] == "declared but absent"
    (finding,) = report["findings"]
    assert (finding["code"], finding["name"]) == ("group_absent", "mtp")
    assert "set num_nextn_predict_layers to 0, or graft the layer" in finding["fix"]
    assert main(["check", str(tmp_path / "made"), "--allow-absent", "mtp"]) == 0


def test_b01_a_snapshot_of_fixed_state_is_143_mb_and_not_930() -> None:
    """jundot/omlx issue 3421: each prefix snapshot copied the whole cache of 46,300 tokens."""
    budget = build(read_config("glm-5.3-flash")).budget()
    assert budget.kda_recurrent == 34 * 64 * 128 * 128 * 4 == 142_606_336
    assert budget.fixed() == 142_606_336 + 34 * 24_576 * 3 * 2 == 147_619_840
    assert budget.for_sequence(46_300) == 147_619_840 + 46_300 * 16_907 == 930_413_940


def glm(tp: int, num_spec: int, *, context: int = 131_072) -> VllmSettings:
    return VllmSettings(
        version="0.31",
        tp=tp,
        max_model_len=context,
        kv_dtype=KvDtype.BF16,
        spec_method=SpecMethod.MTP if num_spec else SpecMethod.NONE,
        num_spec=num_spec,
    )


@pytest.mark.parametrize(("tp", "num_spec", "block"), [(8, 2, 640), (4, 0, 1_152)])
def test_b05_the_attention_block_follows_from_the_recurrent_page(tp: int, num_spec: int, block: int) -> None:
    """vllm-project/vllm issue 54359. TP8, 2 drafts: 8 x 16,384 x 4 + 3,072 x 5 x 2 = 555,008 bytes; of latent
    rows of 1,024 that is 543 tokens, and the next multiple of 128 is 640. TP4 without: 1,085,440 -> 1,152."""
    plan = plan_cache(build(read_config("glm-5.3-flash")), glm(tp, num_spec), num_blocks=1)
    assert plan.block_tokens == block


def test_b07_the_tail_of_the_pool_is_one_block_a_request_whatever_its_length() -> None:
    """vllm-project/vllm-ascend issue 15984: charged per 4 tokens, 155,000 tokens asked for 38,750 blocks."""
    plan = plan_cache(build(read_config("glm-5.3-flash")), glm(8, 2, context=155_000), num_blocks=1)
    tails = [group.blocks(155_000) for group in plan.groups if group.kind is Kind.TAIL]
    latents = [group.blocks(155_000) for group in plan.groups if group.kind is Kind.LATENT]
    assert tails == [1]
    assert latents == [-(-155_000 // 640)] == [243]


def test_b09_the_index_keys_are_a_sixth_of_the_pool() -> None:
    """sgl-project/sglang pull 11309: 61 layers x (656 + 132) bytes a token; the log left the 132 out."""
    settings = VllmSettings(version="0.31", max_model_len=131_072, kv_dtype=KvDtype.FP8_DS_MLA)
    plan = plan_cache(build(read_config("deepseek-v3.2")), settings, num_blocks=1)
    assert plan.bytes_per_block == plan.block_tokens * 61 * (656 + 132)
    assert 61 * (656 + 132) == 48_068


def test_b14_a_recurrent_state_is_one_block_whatever_the_length() -> None:
    """vllm-project/vllm-metal pull 579: 1,301 tokens in blocks of 544 were billed three recurrent blocks."""
    settings = VllmSettings(version="0.31", max_model_len=131_072, tp=2, prefix_caching=False)
    plan = plan_cache(build(read_config("qwen3-next-80b-a3b")), settings, num_blocks=1)
    recurrent = {group.blocks(1_301) for group in plan.groups if group.kind is Kind.RECURRENT}
    assert recurrent == {1}
