"""Read vLLM's start-up lines out of any log text: prefixes, colours and noise do not matter.

Source of the messages: vllm-project/vllm vllm/v1/core/kv_cache_utils.py (groups, cache size,
concurrency, too small), vllm/v1/worker/gpu_worker.py (memory), vllm/platforms/interface.py
and, through 0.19, vllm/model_executor/models/config.py (block, padding),
vllm/v1/engine/core.py and vllm/entrypoints (version, flags), 0.6 to 0.33. Only their shape
is matched: a number stands where the message has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from re import Match
from typing import Any

from modelbones.explain.flags import flags_of_args, flags_of_engine
from modelbones.explain.log import EngineLog, Memory, PaddingLine, TooSmallLine

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_COUNT = r"(\d[\d,]{0,23})"
_DECIMAL = r"(\d{1,9}(?:\.\d{1,6})?)"
_VERSION = r"v?([0-9][^\s)]{0,79})"
_TOO_SMALL = (
    rf"max seq len \({_COUNT}\), \(?{_DECIMAL} GiB KV cache is needed, which is larger than the available KV cache "
    rf"memory \({_DECIMAL} GiB\)(?:.{{0,80}}?maximum model length is {_COUNT})?"
)


def read_log(lines: Iterable[str]) -> EngineLog | None:
    """The last start of a log that printed a figure; None when no line is vLLM's."""
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.result()


class _Reader:
    """Folds lines into starts."""

    def __init__(self) -> None:
        self.start = EngineLog()
        self.last: EngineLog | None = None
        self.found = False

    def read(self, line: str) -> None:
        """Take what `line` says, if it is one of the engine's."""
        for marker, pattern, take in _LINES:
            if marker not in line:
                continue
            match = pattern.search(_printable(line))
            if match is None:
                continue
            if marker in _OPENING and self.start.has_capacity:
                self.last = self.start
                self.start = EngineLog(starts=self.start.starts + 1)
            self.found = True
            self.start = replace(self.start, **take(self.start, match))

    def result(self) -> EngineLog | None:
        """The start to explain."""
        if not self.found:
            return None
        if self.last is not None and not self.start.has_figures:
            return replace(self.last, starts=self.start.starts)
        return self.start


def _printable(line: str) -> str:
    """`line` without colours; what else cannot be printed is a space: a report repeats names out of it."""
    return "".join(char if char.isprintable() else " " for char in _COLOUR.sub("", line))


Taken = dict[str, Any]
"""Fields of an `EngineLog` a line sets."""
Take = Callable[[EngineLog, Match[str]], Taken]


def whole(text: str) -> int:
    """A printed count, with or without commas."""
    return int(text.replace(",", ""))


def _counted(name: str) -> Take:
    return lambda _, match: {name: whole(match[1])}


def _first_context(log: EngineLog, match: Match[str]) -> Taken:
    """The first is the model's; a later one is the drafter's."""
    return {} if log.max_model_len is not None else {"max_model_len": whole(match[1])}


def _memory(log: EngineLog, match: Match[str]) -> Taken:
    return {"memories": (*log.memories, Memory.of_gib(Decimal(match[1])))}


def _exact_memory(log: EngineLog, match: Match[str]) -> Taken:
    return {"exact_memory": (*log.exact_memory, whole(match[1]))}


def _padding_layers(log: EngineLog, match: Match[str]) -> Taken:
    line = PaddingLine(layers=whole(match[1]), percent=Decimal(match[2]))
    # Profiling makes the groups once more and prints the same line again.
    return {} if line in log.padding_layers else {"padding_layers": (*log.padding_layers, line)}


def _page_padding(_: EngineLog, match: Match[str]) -> Taken:
    return {"padding_percent": Decimal(match[1])}


def _overridden(_: EngineLog, match: Match[str]) -> Taken:
    # From 0 blocks it is the dry run that profiles CUDA graphs.
    return {} if whole(match[1]) == 0 else {"num_blocks": whole(match[2]), "is_block_sum": False}


def _concurrency(_: EngineLog, match: Match[str]) -> Taken:
    return {"concurrency_context": whole(match[1]), "concurrency": Decimal(match[2])}


def _too_small(_: EngineLog, match: Match[str]) -> Taken:
    estimated = None if match[4] is None else whole(match[4])
    line = TooSmallLine(
        context=whole(match[1]), needed=Decimal(match[2]), available=Decimal(match[3]), estimated_context=estimated
    )
    return {"too_small": line}


def _all_blocks(log: EngineLog, match: Match[str]) -> Taken:
    return {} if log.num_blocks is not None else {"num_blocks": whole(match[1]), "is_block_sum": True}


def _engine(_: EngineLog, match: Match[str]) -> Taken:
    return {"version": match[1], "names_flags": True, **flags_of_engine(match[2])}


def _arguments(_: EngineLog, match: Match[str]) -> Taken:
    return {"names_flags": True, **flags_of_args(match[1])}


def _server(_: EngineLog, match: Match[str]) -> Taken:
    return {"version": match[1]}


_SHAPES: tuple[tuple[str, str, Take], ...] = (
    ("API server version", rf"vLLM API server version {_VERSION}", _server),
    ("non-default args: ", r"non-default args: (\{.*)", _arguments),
    ("LLM engine (v", rf"Initializing an? (?:V1 )?LLM engine \({_VERSION}\) with config: (.*)", _engine),
    ("Using max model len", rf"Using max model len {_COUNT}", _first_context),
    ("max_num_batched_tokens=", rf"enabled with max_num_batched_tokens={_COUNT}", _counted("max_batched_tokens")),
    ("kv cache block size to", rf"(?:Setting|Forcing) kv cache block size to {_COUNT}", _counted("forced_block")),
    ("attention block size to", rf"Setting attention block size to {_COUNT} tokens", _counted("block_tokens")),
    ("Padding mamba page size", rf"Padding mamba page size by {_DECIMAL}%", _page_padding),
    ("padding layers", rf"Add {_COUNT} padding layers, may waste at most {_DECIMAL}%", _padding_layers),
    ("Available KV cache memory", rf"Available KV cache memory: {_DECIMAL} GiB", _memory),
    ("memory for KV Cache as", rf"reserved {_DECIMAL} GiB memory for KV Cache as specified", _memory),
    ("kv cache memory in use is", rf"kv cache memory in use is {_COUNT} bytes", _exact_memory),
    ("num_gpu_blocks_override=", rf"num_gpu_blocks={_COUNT} with num_gpu_blocks_override={_COUNT}", _overridden),
    ("# GPU blocks:", rf"# GPU blocks: {_COUNT}", _counted("num_blocks")),
    ("num_gpu_blocks is:", rf"num_gpu_blocks is: {_COUNT}", _all_blocks),
    ("GPU KV cache size:", rf"GPU KV cache size: {_COUNT} tokens", _counted("cache_tokens")),
    ("Maximum concurrency for", rf"concurrency for {_COUNT} tokens per request: {_DECIMAL}x", _concurrency),
    ("GiB KV cache is needed", _TOO_SMALL, _too_small),
)
"""A word of the line, the shape of the message, what it sets."""
_LINES = tuple((marker, re.compile(shape), take) for marker, shape, take in _SHAPES)
_OPENING = ("API server version", "non-default args: ", "LLM engine (v")
"""Words of lines that begin a start."""
