"""`plan`: public figures, and the engines' own, through its flags."""

from __future__ import annotations

from decimal import Decimal

import pytest

from modelbones.engines.vllm import plan_states
from tests.cli.planning import GIB, M, planned
from tests.cli.running import Cli
from tests.engines.vllm.logs import LOGS
from tests.engines.vllm.models import MODELS

IMAGE = ("glm-5.3-flash", "--engine", "vllm@0.1.dev20051+g487ecf187", "--context", 131_072)
KIMI = ("kimi-linear-48b", "--engine", "vllm@0.11.0", "--assume", "0.19.1", "--tp", 2, "--context", 120_000)
NEXT = ("qwen3-next-80b-a3b", "--engine", "vllm@0.10.2", "--assume", "0.19.1", "--tp", 2, "--context", 262_144)
Q27 = ("qwen3.5-27b", "--engine", "vllm@0.19.1", "--context", 32_768, "--prefix-caching", "off")
OFF = ("--prefix-caching", "off")
LLAMA = ("llama-3.1-8b", "--assume", "0.19.1", *OFF)
# GLM-5.2 keeps what GLM-5.1 keeps under the rules of 0.22, which make every indexer.
GLM51 = (
    *("glm-5.2", "--engine", "vllm@0.20.2rc1.dev249", "--assume", "0.22", "--tp", 8),
    *("--context", 202_752, "--kv-dtype", "fp8_ds_mla"),
)
DRAFT = ("--engine", "vllm@0.28", "--kv-dtype", "fp8", "--context", 131_072)

FROM_BLOCKS: list[tuple[str, tuple[object, ...], int, dict[str, object]]] = [
    (
        "glm-10: GLM-5.3-Flash image, TP4 bf16",
        (*IMAGE, "--tp", 4),
        3791,
        {"block_tokens": 1152, "padding_percent": 8.68, "blocks_per_request": 123, "logged_tokens": 4_039_788},
    ),
    (
        "glm-15: vllm-project/vllm issue 55221",
        (*IMAGE[:3], "--context", M, "--tp", 2, "--spec", "mtp:3"),
        1140,
        {"block_tokens": 2304, "blocks_per_request": 472, "logged_tokens": 2_532_577},
    ),
    (
        "kimi-01: vllm-project/vllm issue 28228",
        (*KIMI, *OFF),
        318,
        {
            "block_tokens": 960,
            "logged_tokens": 75_840,
            "logged_concurrency": 2.48,
            "padding_layers": [{"kind": "recurrent", "layers": 1, "percent": 5.0}],
        },
    ),
    (
        "qwen-01: Qwen3-Next-80B-A3B, vLLM 0.10.2",
        (*NEXT, *OFF),
        7162,
        {"block_tokens": 544, "padding_percent": 1.49, "logged_tokens": 973_760, "logged_concurrency": 14.77},
    ),
    (
        "qwen-02: vllm-project/vllm issue 40691",
        Q27,
        1487,
        {"block_tokens": 784, "logged_tokens": 290_864, "logged_concurrency": 33.04},
    ),
    (
        "qwen-08: Qwen3.5-27B on GB10",
        ("qwen3.5-27b", "--engine", "vllm@0.28", "--context", 4096),
        469,
        {"logged_tokens": 160_085, "logged_concurrency": 39.08},
    ),
    (
        "ctl-04: vllm-project/vllm pull 13596",
        (*LLAMA, "--engine", "vllm@0.7", "--context", 2048),
        127_626,
        {"logged_tokens": 2_042_016, "logged_concurrency": 997.08},
    ),
]


@pytest.mark.parametrize(
    ("flags", "blocks", "figures"), [row[1:] for row in FROM_BLOCKS], ids=[row[0] for row in FROM_BLOCKS]
)
def test_public_figures_follow_from_a_block_count(
    flags: tuple[object, ...], blocks: int, figures: dict[str, object], run: Cli
) -> None:
    capacity = planned(run, *flags, "--num-blocks", blocks)["capacity"]
    assert {name: capacity[name] for name in figures} == figures


FROM_MEMORY: list[tuple[str, tuple[object, ...], str, int]] = [
    ("glm-10", (*IMAGE, "--tp", 4), "47.29", 3791),
    ("kimi-01", (*KIMI, *OFF), "2.30", 318),
    ("qwen-01", (*NEXT, *OFF), "44.59", 7162),
    ("qwen-03", ("qwen3.5-35b-a3b", "--engine", "vllm@0.24", "--assume", "0.25", *DRAFT[2:]), "5.98", 299),
    ("qwen-05", ("qwen3.5-27b", "--tp", 2, *DRAFT), "4.99", 208),
    ("dsa-01", (*GLM51, "--dcp", 1), "19.55", 5336),
    ("dsa-02", (*GLM51, "--dcp", 1, "--spec", "mtp:1"), "18.51", 4988),
    ("dsa-03", (*GLM51, "--dcp", 2), "19.47", 5314),
    ("dsa-05", (*GLM51, "--dcp", 4), "19.47", 5314),
    ("dsa-06", (*GLM51, "--dcp", 4, "--spec", "mtp:1"), "18.42", 4965),
    ("dsa-08", (*GLM51, "--dcp", 8, "--spec", "mtp:1"), "14.15", 3813),
    ("ctl-01", (*LLAMA, "--engine", "vllm@0.6", "--context", 20_000), "3.81", 1952),
]
PRINTED = {log.id: log for log in LOGS}


@pytest.mark.parametrize(("name", "flags", "gib", "blocks"), FROM_MEMORY, ids=[row[0] for row in FROM_MEMORY])
def test_public_figures_follow_from_the_printed_memory(
    name: str, flags: tuple[object, ...], gib: str, blocks: int, run: Cli
) -> None:
    """Two decimals of a GiB are an interval; the block count lies in it, and gives what was logged."""
    half, middle = Decimal("0.005"), Decimal(gib)
    low, high = (
        planned(run, *flags, "--kv-memory", f"{bound}GiB")["capacity"]["num_blocks"]
        for bound in (middle - half, middle + half)
    )
    assert low <= blocks <= high
    capacity, printed = planned(run, *flags, "--num-blocks", blocks)["capacity"], PRINTED[name].printed
    for key, word in (("tokens", "logged_tokens"), ("concurrency", "logged_concurrency"), ("block", "block_tokens")):
        assert key not in printed or capacity[word] == printed[key]


def test_mtp_3_with_6_gib_is_440_blocks_and_443_628_tokens(run: Cli) -> None:
    """12 latents and 12 indexers a block of 1,152: 14,611,968 bytes; 114 + 1 + 3 x 5 blocks a request."""
    data = planned(run, *IMAGE, "--tp", 4, "--spec", "mtp:3", "--kv-memory", 6_442_450_944)
    capacity = data["capacity"]
    assert capacity["bytes_per_block"] == 12 * 1152 * (1024 + 33) == 14_611_968
    assert capacity["num_blocks"] == 6_442_450_944 // 14_611_968 == 440
    assert capacity["blocks_per_request"] == 114 + 1 + 3 * (2 + 3)
    assert capacity["logged_tokens"] == 443_628
    # 439 blocks can be held: the null block is no one's.
    assert data["max_sequences"] == 439 // 130 == 3
    assert data["max_context"] == (439 - 16) * 1152 == 487_296


def test_the_figures_that_need_the_unpublished_drafter_are_reached_below_the_flags() -> None:
    """TP2 fp8_ds_mla with DFlash2's 7 tokens, its window in borrowed slots: no flag says a fork's layout."""
    log = PRINTED["glm-01"]
    plan = plan_states(MODELS[log.model], log.settings, num_blocks=643)
    assert (plan.block_tokens, plan.bytes_per_block, plan.blocks_per_request) == (3584, 27_163_136, 414)
    assert 11 * (2_351_104 + 118_272) == 27_163_136
    assert plan.logged_tokens == 1_553_140


def test_gpt_oss_holds_its_windows_and_its_full_layers_in_two_groups(run: Cli) -> None:
    """36 layers of 8 key heads of 64 bf16: 16 x 2,048 bytes a page, 18 pages a block."""
    data = planned(run, "gpt-oss-120b", "--kv-memory", "20GiB", "--context", 131_072)
    capacity = data["capacity"]
    assert capacity["bytes_per_block"] == 18 * 16 * 8 * 64 * 2 * 2 == 589_824
    assert capacity["num_blocks"] == 20 * GIB // 589_824 == 36_408
    # A window of 128 and two batches of 8,192 in flight, one block more for where it starts.
    window = -(-(127 + 2 * 8192) // 16) + 1
    assert sorted(g["blocks_per_request"] for g in capacity["groups"]) == sorted([131_072 // 16, window])
    assert data["max_sequences"] == 36_407 // (8192 + window) == 3


@pytest.mark.parametrize("length", [4096, 32_768, 131_072, 262_144, M])
@pytest.mark.parametrize(
    ("engine", "fixed", "each"), [("metrale", 147_619_840, 16_907), ("transformers", 149_291_008, 16_918)]
)
def test_memory_for_three_sequences_holds_three_and_one_byte_less_two(
    length: int, engine: str, fixed: int, each: int, run: Cli
) -> None:
    """metrale also keeps a spare slot of 147,619,840 bytes."""
    spare = 147_619_840 if engine == "metrale" else 0
    need = spare + 3 * (fixed + each * length)
    flags = ("glm-5.3-flash", "--engine", engine, "--context", length, "--concurrency", 3)
    data = planned(run, *flags, "--kv-memory", need)
    assert (data["fits"], data["binds"], data["max_sequences"], data["max_context"] >= length) == (
        True,
        "state",
        3,
        True,
    )
    state = {part: size for part, size in data["ranks"][0]["parts"].items() if not part.startswith("weights.")}
    assert sum(state.values()) == need
    less = planned(run, *flags, "--kv-memory", need - 1, code=1)
    assert (less["fits"], less["max_sequences"]) == (False, 2)
