"""Figures that differ, and starts the log does not say all of."""

from __future__ import annotations

import pytest

from modelbones.engines.vllm import KvDtype, SpecMethod, VllmSettings, plan_states
from modelbones.explain import Explanation, Figure, Given, explain, read_log
from modelbones.explain.names import REPOSITORIES, preset_of
from modelbones.families.registry import build, preset_names, read_config
from tests.engines.vllm.log import dflash2
from tests.engines.vllm.models import MODELS
from tests.explain.printing import engine_line

GLM = VllmSettings(version="0.31.0", max_model_len=131_072, tp=4)


def explained(*lines: str, model: str = "glm53", **given: object) -> Explanation:
    log = read_log(lines)
    assert log is not None
    return explain(log, MODELS[model], Given(**given))  # type: ignore[arg-type]


def figure(said: Explanation, name: str) -> Figure:
    return next(each for each in said.figures if each.name == name)


def test_the_smallest_of_two_ranks_makes_the_pool() -> None:
    capacity = "GPU KV cache size: 4,039,788 tokens, Maximum concurrency for 131,072 tokens per request: 30.82x"
    lines = [engine_line(GLM), "Available KV cache memory: 48.10 GiB", "Available KV cache memory: 47.29 GiB", capacity]
    assert explained(*lines).agrees
    said = explained(*lines[:2], capacity)
    tokens = figure(said, "cache_tokens")
    assert (tokens.logged, tokens.computed, tokens.matches) == (4_039_788, 3855 * 131_072 // 123, False)
    assert tokens.reason == (
        "it takes 3,791 blocks, 47.29 GiB; the pool is made of the smallest memory over 4 ranks, and likeliest "
        "the rank that has it is not in this log"
    )


def test_more_blocks_than_the_memory_gives_are_a_forks_or_another_starts() -> None:
    said = explained(engine_line(GLM), "Available KV cache memory: 40.00 GiB", "GPU KV cache size: 4,039,788 tokens")
    assert figure(said, "cache_tokens").reason == (
        "it takes 3,791 blocks, 47.29 GiB, more than the printed memory; likeliest a fork's own rule, or lines of "
        "another start"
    )


def test_another_versions_rules_are_named_when_they_give_every_figure() -> None:
    """qwen-02's start, printed by 0.19's formula; the log says 0.28.0."""
    start = VllmSettings(version="0.28.0", max_model_len=32_768, prefix_caching=False)
    said = explained(
        engine_line(start),
        "Setting attention block size to 784 tokens",
        "# GPU blocks: 1487",
        "GPU KV cache size: 290,864 tokens",
        "Maximum concurrency for 32,768 tokens per request: 33.04x",
        model="qwen3_5_27b",
    )
    tokens = figure(said, "cache_tokens")
    assert (tokens.computed, tokens.matches) == (1_082_800, False)
    assert tokens.reason == "the rules of 0.19.1 give every figure: likeliest the build has those"
    assert figure(said, "concurrency").matches


def test_a_block_no_version_gives_is_a_forks() -> None:
    said = explained(engine_line(GLM), "Setting attention block size to 7777 tokens")
    assert figure(said, "block_tokens").reason == (
        "no known version gives it with these settings; likeliest a fork's own rule, "
        "or a setting the log does not print"
    )


def test_a_device_the_log_does_not_name_is_a_reason() -> None:
    start = VllmSettings(version="0.33.0", max_model_len=131_072, tp=2)
    sm100 = plan_states(
        MODELS["glm53"], VllmSettings(version="0.33.0", max_model_len=131_072, tp=2, capability=10), num_blocks=1
    )
    line = f"Setting attention block size to {sm100.block_tokens} tokens"
    said = explained(engine_line(start), line)
    assert figure(said, "block_tokens").reason == "compute capability 10 gives every figure, and the log does not say"
    assert explained(engine_line(start), line, capability=10).agrees


def test_a_request_that_does_not_fit_is_recomputed() -> None:
    """glm-07: 850,000 tokens need 13.46 GiB; with 12.00 GiB 0.31's rule of the null block counts."""
    start = VllmSettings(
        version="0.1.dev20051",
        max_model_len=850_000,
        tp=2,
        kv_dtype=KvDtype.FP8_DS_MLA,
        spec_method=SpecMethod.DRAFT,
        num_spec=7,
    )
    # 474 blocks less 294 that do not grow: 180 of 3,584 tokens.
    refusal = (
        "ValueError: To serve at least one request with the models's max seq len (850000), (13.46 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (12.00 GiB). Based on the available memory, the "
        "estimated maximum model length is 645120."
    )
    given = {"drafter": dflash2(), "drafter_block": 64, "capability": 12, "max_batched_tokens": 7168}
    said = explained(engine_line(start), refusal, **given)
    assert [(each.name, each.logged, each.computed, each.matches) for each in said.figures] == [
        ("needed_gib", 13.46, 13.46, True),
        ("estimated_context", 645_120, 645_120, True),
    ]


def test_memory_that_is_printed_less_the_null_block_gives_the_same_estimate() -> None:
    model, start = MODELS["glm53"], VllmSettings(version="0.31.0", max_model_len=1_048_576, tp=4)
    plan = plan_states(model, start, memory=8 * 2**30)
    assert plan.too_small is not None
    needed, available = (nbytes / 2**30 for nbytes in (plan.too_small.needed_bytes, plan.too_small.available_bytes))
    said = explained(
        engine_line(start),
        f"the model's max seq len (1048576), {needed:.2f} GiB KV cache is needed, which is larger than the available "
        f"KV cache memory ({available:.2f} GiB). Based on the available memory, the estimated maximum model length is "
        f"{plan.too_small.max_context}.",
    )
    assert [each.matches for each in said.figures] == [True, True]


def test_one_pool_of_several_engines_may_have_any_of_their_memories() -> None:
    line = engine_line(GLM).replace("data_parallel_size=1", "data_parallel_size=2")
    memories = ("Available KV cache memory: 46.00 GiB", "Available KV cache memory: 47.29 GiB")
    assert explained(line, *memories, "GPU KV cache size: 4,039,788 tokens").agrees
    assert explained(line, *memories, "GPU KV cache size: 4,039,788 tokens", "num_gpu_blocks is: 7582").agrees


def test_what_the_log_does_not_say_is_needed_and_not_invented() -> None:
    log = read_log(["GPU KV cache size: 1,553,140 tokens"])
    assert log is not None
    said = explain(log)
    assert said.needed == (
        "the model: modelbones explain LOG MODEL",
        "the version, which no line names: --engine vllm@VERSION",
        "the longest context, which no line names: --context TOKENS",
    )
    assert (said.held, said.figures[0].computed, said.figures[0].matches) == (None, None, None)
    assert said.agrees


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        (
            engine_line(VllmSettings(version="0.99.0", max_model_len=4096)),
            "rules for 0.99.0, which are not known here: --assume one of 0.19.1, 0.22, 0.25, 0.27, 0.28.0, 0.30.0, "
            "0.31.0, 0.32.0, 0.33.0, 0.1.dev20051",
        ),
        (
            engine_line(GLM).replace("kv_cache_dtype=auto", "kv_cache_dtype=turboquant"),
            'the layout of kv_cache_dtype "turboquant", which is not known here: --kv-dtype',
        ),
        (
            engine_line(GLM).replace(
                "speculative_config=None",
                "speculative_config=SpeculativeConfig(method='dflash', model='d', num_spec_tokens=7)",
            ),
            "the states of the drafter d (dflash): --spec draft:CONFIG",
        ),
        (
            engine_line(GLM).replace("speculative_config=None", "speculative_config=SpeculativeConfig(method='mtp')"),
            "the tokens drafted a step, which no line names: --spec mtp:K",
        ),
    ],
)
def test_one_thing_needed_is_named_with_its_flag(line: str, needed: str) -> None:
    assert explained(line, "Available KV cache memory: 1.00 GiB").needed == (needed,)


def test_versions_that_fit_are_offered_where_none_is_named() -> None:
    said = explained(
        "# GPU blocks: 1487",
        "Maximum concurrency for 32,768 tokens per request: 33.04x",
        "GPU KV cache size: 290,864 tokens",
        model="qwen3_5_27b",
        prefix_caching=False,
    )
    assert said.needed == (
        "the version, which no line names: --engine vllm@VERSION (every figure matches the rules of 0.19.1)",
    )


def test_drafting_without_a_model_keeps_no_state_of_its_own() -> None:
    line = engine_line(GLM).replace(
        "speculative_config=None", "speculative_config=SpeculativeConfig(method='ngram', num_spec_tokens=3)"
    )
    assert explained(line, "Available KV cache memory: 1.00 GiB").needed == ()


def test_what_the_engine_would_refuse_is_said_and_nothing_compared() -> None:
    said = explained(
        engine_line(VllmSettings(version="0.31.0", max_model_len=4096, tp=3)), "GPU KV cache size: 7 tokens"
    )
    assert said.refused == "vllm: tp: found 3 ranks for 64 heads; expected a count that divides them; name another tp"
    assert said.agrees


def test_a_pool_of_one_growing_group_is_what_it_says() -> None:
    start = VllmSettings(version="0.31.0", max_model_len=2048)
    said = explained(engine_line(start), "# GPU blocks: 100", "GPU KV cache size: 1,600 tokens", model="llama31_8b")
    assert figure(said, "cache_tokens").matches
    assert figure(said, "cache_tokens").meaning == "Tokens the blocks hold, 16 a block: for this model it is the pool."
    assert said.held is not None
    assert (said.held.fixed_blocks, said.held.idle_tokens) == (0, 1584)


def test_what_glm_holds_with_a_drafter_is_the_published_count() -> None:
    """glm-01: 134 blocks before length counts, 38 ids an idle step of 3,584 tokens."""
    start = VllmSettings(version="0.1.dev20051", max_model_len=1_000_000, tp=2, kv_dtype=KvDtype.FP8_DS_MLA)
    said = explained(
        engine_line(start),
        "# GPU blocks: 643",
        "GPU KV cache size: 1,553,140 tokens",
        spec_method=SpecMethod.DRAFT,
        num_spec=7,
        drafter=dflash2(),
        drafter_block=64,
        capability=12,
        max_batched_tokens=2048,
    )
    assert said.agrees
    held = said.held
    assert held is not None
    assert (held.fixed_blocks, held.fixed_bytes) == (37, 37 * 27_163_136)
    assert (held.blocks_per_request, held.max_sequences, held.binds.kind.value) == (414, 1, "latent")
    assert {group.kind.value: group.blocks for group in held.groups} == {
        "latent": 280,
        "tail": 1,
        "recurrent": 36,
        "window": 97,
    }
    assert (held.idle_step, held.idle_blocks, held.idle_tokens) == (3584, 38, 642 // 38 * 3584)


def test_without_prefix_caching_nothing_idle_is_kept() -> None:
    said = explained(engine_line(GLM), "# GPU blocks: 643", prefix_caching=False)
    assert said.held is not None
    assert (said.held.idle_step, said.held.idle_blocks, said.held.idle_tokens) == (0, 0, 0)


def test_a_skeleton_is_a_model_too() -> None:
    log = read_log([engine_line(GLM), "Setting attention block size to 1152 tokens"])
    assert log is not None
    assert explain(log, build(read_config("glm-5.3-flash"))).agrees


@pytest.mark.parametrize("repository", REPOSITORIES)
def test_every_repository_is_a_presets(repository: str) -> None:
    preset = REPOSITORIES[repository]
    assert preset in preset_names()
    assert preset_of(repository.upper()) == preset


def test_a_copy_under_another_owner_is_no_preset() -> None:
    assert preset_of("nvidia/GLM-5.3-Flash") is None
    assert preset_of("/models/GLM-5.3-Flash") is None
