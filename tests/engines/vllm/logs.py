"""Every public vLLM log the tests recompute, and the figures that stay open."""

from __future__ import annotations

from tests.engines.vllm.log import Log
from tests.engines.vllm.logs_glm import glm_logs
from tests.engines.vllm.logs_hybrid import hybrid_logs
from tests.engines.vllm.logs_plain import control_logs, sparse_logs

LOGS: tuple[Log, ...] = (*glm_logs(), *hybrid_logs(), *sparse_logs(), *control_logs())

GAPS: dict[str, str] = {
    "glm-03": "memory: the printed 21.54 GiB is one rank's; the pool is made of the least over the ranks",
    "glm-06": "memory: the printed 15.67 GiB is one rank's; the pool is made of the least over the ranks",
    "glm-17": "3,210 blocks: no memory is logged",
    "glm-19": "457,880 tokens: no memory is logged, and the fork's 288-byte row has no published stride",
    "glm-20": "1,265,215 tokens: no memory is logged and the drafter is not published",
    "glm-21": "capacity: another engine's build, no memory is logged",
    "glm-22": "the fork's split groups and its drafter's pages are not published",
    "glm-23": "a dump of the fork's own strides, in units of 8,448 bytes no release has",
    "glm-24": "the fork's rows of 520 bytes are its own layout, and pipeline stages differ",
    "glm-25": "neither the block count nor the batched tokens are published; 256 fits",
    "glm-26": "neither the block count nor the batched tokens are published; 2,048 fits",
    "qwen-14": "52,110 tokens: the extracted hidden states are a group of no model's state",
    "qwen-16": "capacity: no memory is logged",
    "qwen-17": "1,823,372 tokens: no memory is logged and nvfp4 keys and values are not described",
    "dsa-09": "bytes: the log is of one of four pipeline stages and prints no memory",
    "ctl-06": "memory: the printed 8.11 GiB is one rank's; the pool is made of the least over the ranks",
}
"""Figures of the logs that stay open, by row."""
