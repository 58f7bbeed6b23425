"""A small log that prints the figures of a published row, as that version words them."""

from __future__ import annotations

from modelbones.engines.vllm import KvDtype, SpecMethod, VllmSettings
from tests.engines.vllm.log import Log

ENGINE = "(EngineCore pid=212) INFO 09-04 10:58:50 [core.py:123] "
WORKER = "(Worker_TP{rank} pid={pid}) INFO 09-04 10:59:31 [gpu_worker.py:640] "
POOL = "(EngineCore pid=212) INFO 09-04 10:59:32 [kv_cache_utils.py:2395] "
WORDS = {KvDtype.BF16: "bfloat16"}


def engine_line(settings: VllmSettings, model: str = "zai-org/GLM-5.3-Flash") -> str:
    """The engine's own line, with the flags a start has."""
    spec = "None"
    if settings.spec_method is not SpecMethod.NONE:
        method = {SpecMethod.MTP: "mtp", SpecMethod.DRAFT: "dflash"}[settings.spec_method]
        spec = f"SpeculativeConfig(method='{method}', model='drafter', num_spec_tokens={settings.num_spec})"
    dtype = WORDS.get(settings.kv_dtype, settings.kv_dtype.value)
    return (
        f"{ENGINE}Initializing a V1 LLM engine (v{settings.version}) with config: model='{model}', "
        f"speculative_config={spec}, tokenizer='{model}', dtype=torch.bfloat16, "
        f"max_seq_len={settings.max_model_len}, load_format=auto, tensor_parallel_size={settings.tp}, "
        f"pipeline_parallel_size=1, data_parallel_size=1, decode_context_parallel_size={settings.dcp}, "
        f"quantization=None, kv_cache_dtype={dtype}, device_config=cuda, seed=0, "
        f"enable_prefix_caching={settings.prefix_caching}, enable_chunked_prefill=True"
    )


def lines_of(log: Log) -> list[str]:
    """Every figure the row publishes, and its block count where no memory is printed."""
    settings, printed = log.settings, log.printed
    lines = [
        engine_line(settings),
        f"INFO Chunked prefill is enabled with max_num_batched_tokens={settings.max_batched_tokens}.",
    ]
    if settings.block_size is not None:
        lines.append(f"INFO [utils.py:261] non-default args: {{'block_size': {settings.block_size}}}")
    if "block" in printed:
        lines.append(
            f"{ENGINE}Setting attention block size to {printed['block']} tokens to ensure that attention page size "
            "is >= mamba page size."
        )
    if "padding" in printed:
        lines.append(
            f"{ENGINE}Padding mamba page size by {printed['padding']:.2f}% to ensure that mamba page size "
            "and attention page size are exactly equal."
        )
    for layers, percent in printed.get("padding_layers", ()):
        lines.append(f"{POOL}Add {layers} padding layers, may waste at most {percent:.2f}% KV cache memory")
    if log.gib is not None:
        lines += [
            f"{WORKER.format(rank=rank, pid=300 + rank)}Available KV cache memory: {log.gib} GiB"
            for rank in range(settings.tp)
        ]
    elif log.memory is not None:
        lines.append(f"INFO [utils.py:261] non-default args: {{'kv_cache_memory_bytes': {log.memory}}}")
    elif log.blocks is not None:
        lines.append(f"{POOL}# GPU blocks: {log.blocks}")
    return [*lines, *_capacity(log)]


def _capacity(log: Log) -> list[str]:
    tokens, concurrency = log.printed.get("tokens"), log.printed.get("concurrency")
    size = f"GPU KV cache size: {tokens:,} tokens" if tokens is not None else ""
    times = (
        f"Maximum concurrency for {log.settings.max_model_len:,} tokens per request: {concurrency:.2f}x"
        if concurrency is not None
        else ""
    )
    if log.settings.version.startswith("0.28") and size and times:
        return [f"{POOL}{size}, {times}"]
    return [f"{POOL}{text}" for text in (size, times) if text]
