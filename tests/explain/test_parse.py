"""The lines, whatever stands before, between and inside them."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.explain import EngineLog, Given, Memory, explain, read_log
from modelbones.explain.parse import _SHAPES
from modelbones.explain.reading import text_lines
from tests.engines.vllm.models import MODELS

SIZE = "GPU KV cache size: 1,553,140 tokens"
PREFIXES = (
    "",
    "INFO 08-26 14:03:11 [kv_cache_utils.py:2395] ",
    "(EngineCore_DP0 pid=212) INFO 08-26 14:03:11 [kv_cache_utils.py:1291] ",
    "\x1b[1;36m(EngineCore_0 pid=82)\x1b[0;0m INFO 08-27 21:03:29 [kv_cache_utils.py:849] ",
    "2026-05-01 22:45:53.672 | (EngineCore pid=187) INFO 05-01 20:45:53 [kv_cache_utils.py:1316] ",
    '{"log":"(EngineCore pid=9) INFO ',
    "\ufeff# ",
)


def read(*lines: str) -> EngineLog:
    log = read_log(lines)
    assert log is not None
    return log


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\x1b[0m\n"])
def test_a_prefix_a_colour_or_a_line_end_hides_nothing(prefix: str, end: str) -> None:
    assert read(prefix + SIZE + end).cache_tokens == 1_553_140


def test_both_capacity_lines_are_read_apart_and_as_one() -> None:
    apart = read(SIZE, "Maximum concurrency for 1,000,000 tokens per request: 1.55x")
    assert apart == read(f"{SIZE}, Maximum concurrency for 1,000,000 tokens per request: 1.55x")
    assert (apart.concurrency, apart.context) == (Decimal("1.55"), 1_000_000)


def test_old_lines_print_the_context_without_commas() -> None:
    log = read("# GPU blocks: 33660", "Maximum concurrency for 4096 tokens per request: 131.48x")
    assert (log.num_blocks, log.context, log.is_block_sum) == (33_660, 4096, False)


def test_both_spellings_of_the_refusal_are_read() -> None:
    old = (
        "ValueError: To serve at least one request with the models's max seq len (262144), (24.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (8.04 GiB). Based on the available memory, the "
        "estimated maximum model length is 87840. Try increasing `gpu_memory_utilization`"
    )
    new = old.replace("models's", "model's").replace("(24.00 GiB", "24.0 GiB")
    for text in (old, new):
        line = read(text).too_small
        assert line is not None
        assert (line.context, line.needed, line.available) == (262_144, Decimal(24), Decimal("8.04"))
        assert line.estimated_context == 87_840
    bare = read(old.split(" Based", maxsplit=1)[0]).too_small
    assert bare is not None
    assert bare.estimated_context is None


def test_the_smallest_memory_counts_and_its_bytes_where_they_stand() -> None:
    lines = ("Available KV cache memory: 21.54 GiB", "Available KV cache memory: 20.34 GiB")
    assert read(*lines).memory == Memory.of_gib(Decimal("20.34"))
    exact = "Current kv cache memory in use is 21839409152 bytes."
    assert read(*lines, exact).memory == Memory.of_bytes(21_839_409_152)


def test_bytes_that_another_line_contradicts_do_not_count() -> None:
    lines = ("Available KV cache memory: 2.30 GiB", "Current kv cache memory in use is 47878721024 bytes.")
    assert read(*lines).memory == Memory.of_gib(Decimal("2.30"))


def test_flags_come_from_the_engines_own_line() -> None:
    log = read(
        "(EngineCore pid=284) INFO 05-30 07:40:52 [core.py:112] Initializing a V1 LLM engine (v0.22.0) with config: "
        "model='Qwen/Qwen3.5-27B', speculative_config=SpeculativeConfig(method='mtp', model='other', "
        "num_spec_tokens=3), tokenizer='Qwen/Qwen3.5-27B', max_seq_len=200000, tensor_parallel_size=2, "
        "pipeline_parallel_size=1, data_parallel_size=4, decode_context_parallel_size=1, quantization=None, "
        "kv_cache_dtype=fp8, structured_outputs_config=StructuredOutputsConfig(backend='auto'), "
        "enable_prefix_caching=True, compilation_config={'mode': 3}"
    )
    assert (log.version, log.model, log.max_model_len) == ("0.22.0", "Qwen/Qwen3.5-27B", 200_000)
    assert (log.spec_method, log.num_spec, log.drafter) == ("mtp", 3, "other")
    assert (log.tp, log.dp, log.dcp, log.kv_dtype, log.prefix_caching) == (2, 4, 1, "fp8", True)


def test_flags_come_from_the_arguments_that_are_no_default() -> None:
    log = read(
        "(APIServer pid=1) INFO [utils.py:261] non-default args: {'model_tag': '/m', 'max_model_len': 71680, "
        "'block_size': 816, 'mamba_ssm_cache_dtype': 'float16', 'kv_cache_memory_bytes': 7000000000, "
        "'speculative_config': {'method': 'dflash', 'model': 'z-lab/D', 'num_speculative_tokens': 7}}"
    )
    assert (log.model, log.max_model_len, log.block_size, log.state_dtype) == ("/m", 71_680, 816, "float16")
    assert (log.spec_method, log.num_spec, log.drafter) == ("dflash", 7, "z-lab/D")
    assert log.memory == Memory.of_bytes(7_000_000_000)


def test_the_dry_run_that_profiles_graphs_is_no_block_count() -> None:
    assert read("Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512").num_blocks is None
    assert read("Overriding num_gpu_blocks=740 with num_gpu_blocks_override=1184").num_blocks == 1184


def test_the_drafters_context_is_not_the_models() -> None:
    assert read("Using max model len 40000", "Using max model len 163840").context == 40_000


def test_the_last_start_that_printed_a_figure_is_explained() -> None:
    banner = "vLLM API server version 0.31.0"
    log = read(banner, SIZE, banner, "GPU KV cache size: 7 tokens", banner)
    assert (log.cache_tokens, log.starts) == (7, 3)


def test_names_keep_nothing_that_moves_a_cursor() -> None:
    log = read("Initializing a V1 LLM engine (v0.31.0) with config: model='a\x1b[2Jb\x07\u202ec', max_seq_len=8")
    assert log.model == "ab  c"


@pytest.mark.parametrize("text", ["", "\n\n", "SGLang: KV Cache is allocated. #tokens: 5", "Setting attention block"])
def test_a_log_of_something_else_is_none(text: str) -> None:
    assert read_log(text.splitlines()) is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_shells_encoding_is_read(encoding: str) -> None:
    log = read_log(text_lines(io.BytesIO(f"\r\nx\r{SIZE}\r\n".encode(encoding))))
    assert log is not None
    assert log.cache_tokens == 1_553_140


def test_no_more_than_the_cap_is_read() -> None:
    assert read_log(text_lines(io.BytesIO(b"x" * 100 + SIZE.encode()), most=100)) is None


@given(st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes) -> None:
    for line in text_lines(io.BytesIO(data)):
        assert line


NUMBERS = st.one_of(
    st.integers(min_value=0, max_value=10**22).map(str),
    st.decimals(min_value=0, max_value=10**8, places=2).map(str),
    st.text(alphabet="0123456789,.", max_size=26),
)
FLAGS = st.sampled_from(
    ["tensor_parallel_size", "decode_context_parallel_size", "max_seq_len", "kv_cache_dtype", "data_parallel_size"]
)
TEMPLATES = (
    "Initializing a V1 LLM engine (v0.31.0) with config: {}={}, enable_prefix_caching=False",
    "speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens={}{})",
    "Setting attention block size to {1} tokens",
    "Padding mamba page size by {1}%",
    "Add {1} padding layers, may waste at most {1}% KV cache memory",
    "Available KV cache memory: {1} GiB",
    "Available KV cache memory: 47.29 GiB",
    "# GPU blocks: {1}",
    "num_gpu_blocks is: {1}",
    "GPU KV cache size: {1} tokens, Maximum concurrency for {1} tokens per request: {1}x",
    "GPU KV cache size: {1} tokens, Maximum concurrency for 131,072 tokens per request: {1}x",
    "max seq len ({1}), ({1} GiB KV cache is needed, which is larger than the available KV cache memory ({1} GiB). "
    "Based on the available memory, the estimated maximum model length is {1}.",
)
LINES = st.builds(
    lambda template, flag, number: template.format(flag, number), st.sampled_from(TEMPLATES), FLAGS, NUMBERS
)


@given(
    st.lists(st.one_of(LINES, st.text(max_size=60)), max_size=8),
    st.sampled_from(["glm53", "llama31_8b", "gpt_oss_120b"]),
)
def test_any_numbers_are_explained(lines: list[str], model: str) -> None:
    log = read_log(lines)
    if log is not None:
        said = explain(log, MODELS[model], Given(version="0.31"))
        assert {figure.name for figure in said.figures} == {figure.name for figure in explain(log).figures}


def test_every_line_has_one_word_and_one_shape() -> None:
    assert len({marker for marker, _, _ in _SHAPES}) == len(_SHAPES)
