"""`plan`: its JSON, its exit codes, its defaults; a checkpoint as MODEL."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.cli.planning import GIB, M, planned
from tests.cli.running import Cli
from tests.cli.test_check import drop

NEEDS = ("--kv-memory", "1GiB")


def test_the_json_others_rely_on(run: Cli) -> None:
    data = planned(run, "glm-5.3-flash", "--gpu", "8xH200", "--overhead", "10GiB", "--context", "128k")
    assert set(data) == {
        *("schema", "model", "model_type", "engine", "version", "context", "concurrency", "parallel", "fits", "binds"),
        *("max_sequences", "max_context", "ranks", "capacity", "alternatives"),
    }
    assert data["schema"] == "modelbones/plan/1"
    assert (data["engine"], data["version"], data["context"], data["concurrency"]) == ("vllm", "0.33.0", 131_072, 1)
    assert data["parallel"] == {"tp": 8, "ep": 1, "pp": 1, "dp": 1, "dcp": 1}
    (rank,) = data["ranks"]
    assert rank["ranks"] == 8
    assert rank["total"] == sum(rank["parts"].values()) == rank["available"] == 143_771 * M * 9 // 10
    assert rank["parts"]["overhead"] == 10 * GIB
    capacity = data["capacity"]
    assert set(capacity) >= {
        *("block_tokens", "bytes_per_block", "num_blocks", "blocks_per_request", "groups", "padding_percent"),
        *("logged_tokens", "logged_concurrency"),
    }
    assert set(capacity["groups"][0]) == {"kind", "layers", "block_tokens", "bytes", "blocks_per_request"}
    assert sum(group["blocks_per_request"] for group in capacity["groups"]) == capacity["blocks_per_request"]
    assert rank["parts"]["state.blocks"] == capacity["num_blocks"] * capacity["bytes_per_block"]


def test_metrale_names_what_holds_a_sequence(run: Cli) -> None:
    data = planned(run, "glm-5.3-flash", "--engine", "metrale", "--kv-memory", "8GiB", "--context", 4096)
    assert data["capacity"] == {
        "slot_bytes": 147_619_840,
        "reserve_bytes": 11 * 513 * 4096,
        "page_bytes": 11 * 1024 * 4096,
        "bytes_per_sequence": 147_619_840 + 16_907 * 4096,
    }
    parts = data["ranks"][0]["parts"]
    assert parts["state.slots"] == parts["state.scratch_slot"] == 147_619_840


def test_a_size_in_gib_is_floored_to_a_byte(run: Cli) -> None:
    """45.07 x 1,073,741,824 = 48,393,544,007.68."""
    parts = planned(run, "llama-3.1-8b", "--kv-memory", "45.07GiB")["ranks"][0]["parts"]
    assert parts["state.blocks"] + parts["unused"] == int(Decimal("45.07") * GIB) == 48_393_544_007
    assert parts["state.blocks"] == 48_393_544_007 // 2_097_152 * 2_097_152


def test_the_cards_are_the_tensor_parallel_ranks_unless_another_axis_is_named(run: Cli) -> None:
    flags = ("llama-3.1-8b", "--overhead", "1GiB", "--context", 4096, "--gpu", "8xH100")
    assert planned(run, *flags)["parallel"]["tp"] == 8
    assert planned(run, *flags, "--ep", 8)["parallel"] == {"tp": 8, "ep": 8, "pp": 1, "dp": 1, "dcp": 1}
    assert planned(run, *flags, "--dp", 8)["parallel"] == {"tp": 1, "ep": 1, "pp": 1, "dp": 8, "dcp": 1}
    staged = planned(run, *flags, "--tp", 2, "--pp", 4)
    assert [(rank["stage"], rank["ranks"]) for rank in staged["ranks"]] == [(0, 2), (1, 2), (2, 2), (3, 2)]


def test_the_context_is_the_models_own_unless_it_is_named(run: Cli) -> None:
    data = planned(run, "llama-3.1-8b", "--kv-memory", "40GiB")
    assert data["context"] == 131_072
    longer = planned(run, "llama-3.1-8b", "--kv-memory", "40GiB", "--context", 200_000)
    assert longer["max_context"] == 200_000


def test_what_does_not_fit_exits_1_and_says_what_would(run: Cli) -> None:
    ran = run("plan", "llama-3.1-8b", "--kv-memory", "1GiB")
    assert (ran.code, ran.err) == (1, "")
    shown = " ".join(ran.out.split())
    # 512 blocks of 16 tokens, the null block one of them.
    assert "1 x 131,072 tokens: does not fit" in shown
    assert "longest context 8,176 tokens at 1 at once" in shown
    assert "The engine will not start: one request needs 16.00 GiB (17,179,869,184 bytes)" in shown
    assert run("plan", "llama-3.1-8b", "--kv-memory", "1GiB", "--context", 8176).code == 0
    assert run("plan", "llama-3.1-8b", "--kv-memory", "1GiB", "--context", 8177).code == 1


def test_another_versions_rules_are_labelled(run: Cli) -> None:
    flags = ("llama-3.1-8b", "--engine", "vllm@9.9", "--assume", "0.33", "--kv-memory", "40GiB")
    capacity = planned(run, *flags)["capacity"]
    assert (capacity["rules"], capacity["assumed"]) == ("0.33.0", True)
    assert "vllm 9.9, by the rules of 0.33.0 (assumed)" in run("plan", *flags).out
    assert planned(run, *flags[:1], "--kv-memory", "40GiB")["capacity"]["assumed"] is False


def test_a_draft_model_is_planned_beside_its_target(run: Cli) -> None:
    flags = ("qwen3.5-27b", "--engine", "vllm@0.28", "--context", 4096, "--kv-memory", "40GiB")
    data = planned(run, *flags, "--spec", "draft:qwen3-8b", "--num-spec", 7)
    assert data["ranks"][0]["parts"]["weights.draft"] == 16_381_470_720
    plain = planned(run, *flags)
    assert data["max_sequences"] < plain["max_sequences"]
    assert "weights.draft" not in plain["ranks"][0]["parts"]


@pytest.mark.parametrize(
    ("scheme", "published"), [("none", 642_646_653_816), ("fp8", 328_326_771_576), ("nvfp4", 194_644_803_576)]
)
def test_a_scheme_gives_the_published_payload(scheme: str, published: int, run: Cli) -> None:
    data = planned(run, "glm-5.3-flash", "--kv-memory", "90GiB", "--scheme", scheme, "--spec", "mtp:1")
    parts = data["ranks"][0]["parts"]
    assert sum(size for part, size in parts.items() if part.startswith("weights.")) == published


def test_every_format_is_written(run: Cli) -> None:
    for style in ("text", "md", "github"):
        ran = run("plan", "glm-5.3-flash", "--gpu", "8xH200", "--overhead", "10GiB", "--format", style)
        assert (ran.code, ran.err) == (0, "")
        assert "longest context" in ran.out


@pytest.mark.parametrize("scheme", ["none", "fp8"])
def test_a_checkpoint_is_planned_from_its_headers(scheme: str, made: dict[str, Path], run: Cli) -> None:
    folder = made[scheme]
    by_headers = planned(run, folder, "--kv-memory", "1GiB", "--spec", "mtp:1")["ranks"][0]["parts"]
    flags = ("--kv-memory", "1GiB", "--spec", "mtp:1", "--scheme", scheme)
    by_patterns = planned(run, folder / "config.json", *flags)["ranks"][0]["parts"]
    assert by_headers == by_patterns


def test_a_checkpoint_says_its_scheme_itself(made: dict[str, Path], run: Cli) -> None:
    ran = run("plan", made["fp8"], *NEEDS, "--scheme", "fp8")
    assert ran.code == 2
    assert ran.err == (
        f"modelbones: --scheme: {made['fp8']} is a checkpoint, whose headers say how it is stored; leave it out\n"
    )


def test_a_directory_without_weights_is_planned_from_its_config(
    made: dict[str, Path], tmp_path: Path, run: Cli
) -> None:
    (tmp_path / "config.json").write_bytes((made["none"] / "config.json").read_bytes())
    parts = planned(run, tmp_path, "--kv-memory", "1GiB")["ranks"][0]["parts"]
    assert parts == planned(run, made["none"], "--kv-memory", "1GiB")["ranks"][0]["parts"]


def test_a_checkpoint_that_lacks_weights_is_refused_not_planned_too_small(bf16: Path, run: Cli) -> None:
    """It once counted what was there: a half-copied checkpoint fitted on a card it would not."""
    assert drop(bf16, "lm_head") == 1
    ran = run("plan", bf16, *NEEDS)
    assert ran.code == 3
    assert ran.err == (
        f"modelbones: {bf16}: 1 tensors that would be loaded are missing, lm_head.weight among them; "
        "their bytes cannot be counted; see `modelbones check`, or plan from its config.json\n"
    )


def test_a_checkpoint_with_a_broken_file_is_refused(bf16: Path, run: Cli) -> None:
    """It once fell back on the sizes of its config without a word."""
    shard = bf16 / "model-00002-of-00003.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    ran = run("plan", bf16, *NEEDS)
    assert (ran.code, ran.out) == (3, "")
    assert "errors in its files, the first: " in ran.err
    assert "its weights cannot be counted; see `modelbones check`, or plan from its config.json" in ran.err


def test_a_checkpoint_without_the_mtp_layer_is_planned_but_not_with_it(bf16: Path, run: Cli) -> None:
    layers = json.loads((bf16 / "config.json").read_text())["text_config"]["num_hidden_layers"]
    assert drop(bf16, f"layers.{layers}.")
    assert run("plan", bf16, *NEEDS).code == 0
    assert run("plan", bf16, *NEEDS, "--spec", "mtp:1").code == 3


def test_a_quantised_config_alone_fills_no_card_with_plain_weights(made: dict[str, Path], run: Cli) -> None:
    """It once counted the published FP8 config's weights as bf16, twice what is stored, against the card."""
    config = made["fp8"] / "config.json"
    flags = ("--gpu", "96GiB", "--kv-memory", "10GiB")
    ran = run("plan", config, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"modelbones: --scheme: found quantization_config in {config} and no weights; "
        "expected to be told how they are stored; name it, or plan from the checkpoint\n"
    )
    for scheme in ("fp8", "none"):
        assert run("plan", config, *flags, "--scheme", scheme).code == 0
    assert run("plan", made["fp8"], *flags).code == 0
    assert run("plan", config, "--kv-memory", "10GiB").code == 0
