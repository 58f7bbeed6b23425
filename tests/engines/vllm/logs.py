"""Public vLLM logs: what was started, what was printed, and where.

A row's class says what its figures rest on. MEMORY: the printed memory alone; a figure in GiB
is an interval of 0.005 either way, in which the block count must lie. BLOCKS: a block count
the source quotes. STRUCTURE: block, padding, groups, blocks a request; or a block count that
only the logged tokens give. GAPS are rows that cannot be reached, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

from modelbones.dtypes import DType
from modelbones.engines.vllm import KvDtype, LayerState, SpecMethod, VllmSettings
from tests.engines.vllm.models import states, window

M = 1_048_576


class Basis(Enum):
    MEMORY = "memory"
    BLOCKS = "blocks"
    STRUCTURE = "structure"


@dataclass(frozen=True, kw_only=True)
class Log:
    """One row: the start, its basis, what was printed or counted, and its source."""

    id: str
    model: str
    start: dict[str, Any]
    basis: Basis
    source: str
    gib: str | None = None
    memory: int | None = None
    blocks: int | None = None
    printed: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> VllmSettings:
        return VllmSettings(**{"max_model_len": 4096, **self.start})

    @property
    def memory_interval(self) -> tuple[int, int] | None:
        """Bytes the printed memory may stand for."""
        if self.memory is not None:
            return self.memory, self.memory
        if self.gib is None:
            return None
        half, gib = Decimal("0.005"), Decimal(2**30)
        return int((Decimal(self.gib) - half) * gib), int((Decimal(self.gib) + half) * gib)


def _dflash2(layers: int = 5) -> tuple[LayerState, ...]:
    """The DFlash2 drafter: 8 KV heads of 128 over a window of 2,048 tokens."""
    return states([window(8, 128, 2048)] * layers, is_draft=True)


def _mtp(tokens: int) -> dict[str, Any]:
    return {"spec_method": SpecMethod.MTP, "num_spec": tokens}


def _drafting(tokens: int, layers: int = 5) -> dict[str, Any]:
    return {"spec_method": SpecMethod.DRAFT, "num_spec": tokens, "drafter": _dflash2(layers)}


IMAGE = "0.1.dev20051+g487ecf187"
SLOTTED = {**_drafting(7), "drafter_block": 64}
GB10 = {"version": IMAGE, "tp": 2, "kv_dtype": KvDtype.FP8_DS_MLA, "capability": 12, **SLOTTED}
LATER = {"version": "0.1.dev20051"}
DSA = {"version": "0.20.2rc1.dev249", "assume": "0.22", "tp": 8, "capability": 12, "max_model_len": 202_752}
DSA_FP8 = {**DSA, "kv_dtype": KvDtype.FP8_DS_MLA}
V28 = {"version": "0.28.0"}
OLD = {"assume": "0.19.1", "prefix_caching": False}
MIAAI = "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks"
RTX6K = "local-inference-lab/rtx6kpro models/glm5.1/benchmarks/glm51-v2-full-68b3569f-20260514"


def _glm() -> tuple[Log, ...]:
    million = {**GB10, "max_model_len": 1_000_000, "max_batched_tokens": 2048}
    wide = {**GB10, "max_batched_tokens": 7168}
    common = {"block": 3584, "latent_page": 2_351_104, "index_page": 118_272, "bytes_per_block": 27_163_136}
    s, b, m = Basis.STRUCTURE, Basis.BLOCKS, Basis.MEMORY
    image = "GLM-5.3-Flash image of 2026-08"
    return (
        Log(
            id="glm-01",
            model="glm53",
            start=million,
            basis=b,
            source=f"{MIAAI}/pull/94",
            blocks=643,
            printed={**common, "request": 414, "tokens": 1_553_140, "concurrency": 1.55},
        ),
        Log(
            id="glm-03",
            model="glm53",
            start=million,
            basis=s,
            source=f"{MIAAI}/pull/94",
            blocks=804,
            printed={**common, "tokens": 1_942_028, "concurrency": 1.94, "group_blocks": (280, 1, 9, 9, 9, 9, 97)},
        ),
        Log(
            id="glm-04",
            model="glm53",
            start=million,
            basis=s,
            source=f"{MIAAI} docs/DESIGN-apc-fine-grained-hits.md",
            blocks=606,
            printed={"tokens": 1_463_768},
        ),
        Log(
            id="glm-06",
            model="glm53",
            start={**wide, "max_model_len": 1_000_000},
            basis=s,
            source=f"{MIAAI} docs/gb10-memory-budget-audit.md",
            blocks=607,
            printed={"request": 574, "tokens": 1_057_491},
        ),
        Log(
            id="glm-07",
            model="glm53",
            start={**wide, "max_model_len": 850_000},
            basis=m,
            source=f"{MIAAI}/issues/204",
            gib="16.12",
            blocks=637,
            printed={"request": 532, "tokens": 1_017_763, "needs_gib": 13.46},
        ),
        Log(
            id="glm-08",
            model="glm53",
            start={**GB10, "max_batched_tokens": 1024, "max_model_len": 900_000},
            basis=s,
            source=f"{MIAAI}/pull/14",
            blocks=690,
            printed={"request": 354, "tokens": 1_754_237, "concurrency": 1.95, "latent_page": 2_351_104},
        ),
        Log(
            id="glm-10",
            model="glm53",
            start={**LATER, "tp": 4, "max_model_len": 131_072},
            basis=m,
            source=image,
            gib="47.29",
            blocks=3791,
            printed={"block": 1152, "padding": 8.68, "request": 123, "tokens": 4_039_788},
        ),
        Log(
            id="glm-11",
            model="glm53",
            start={**LATER, "tp": 4, "max_model_len": 131_072, **_mtp(3)},
            basis=m,
            source=image,
            memory=6_442_450_944,
            blocks=440,
            printed={"block": 1152, "padding": 5.11, "request": 130, "tokens": 443_628},
        ),
        Log(
            id="glm-14",
            model="glm53",
            start={**LATER, "tp": 4, "kv_dtype": KvDtype.FP8_DS_MLA},
            basis=s,
            source=image,
            printed={"block": 1664, "padding": 0.57},
        ),
        Log(
            id="glm-15",
            model="glm53",
            start={**LATER, "tp": 2, "max_model_len": M, **_mtp(3)},
            basis=s,
            source="https://github.com/vllm-project/vllm/issues/55221",
            blocks=1140,
            printed={"block": 2304, "request": 472, "tokens": 2_532_577},
        ),
        Log(
            id="glm-17",
            model="glm53",
            start={**LATER, "tp": 4},
            basis=s,
            source="https://github.com/LMCache/LMCache/pull/5042",
            printed={"block": 1152, "layers": 67, "lmcache_token_bytes": 43_723},
        ),
        Log(
            id="glm-19",
            model="glm53",
            start={**LATER, "tp": 2, "latent_row_bytes": 288, **_mtp(3)},
            basis=s,
            source="https://github.com/vllm-project/vllm/issues/54458",
            printed={"block": 7808},
        ),
        Log(
            id="glm-20",
            model="glm53",
            start={**LATER, "tp": 4, "kv_dtype": KvDtype.FP8, **SLOTTED},
            basis=s,
            source="local-inference-lab/vllm pull 535",
            printed={"block": 2304},
        ),
        Log(
            id="glm-21",
            model="glm53",
            start={**LATER, "tp": 8, **_mtp(3)},
            basis=s,
            source="https://github.com/vllm-project/vllm-ascend/issues/17074",
            printed={"group_tokens": (640, 4, 640, 640, 640)},
        ),
        Log(
            id="glm-25",
            model="glm53",
            start={**GB10, "max_model_len": 262_144, "max_batched_tokens": 256},
            basis=s,
            source="https://github.com/0xSero/local-ai-registry/pull/5",
            blocks=390,
            printed={"request": 152, "tokens": 672_606},
        ),
        Log(
            id="glm-26",
            model="glm53",
            start={**GB10, "tp": 4, "max_model_len": M, "max_batched_tokens": 2048},
            basis=s,
            source="https://github.com/0xSero/local-ai-registry/pull/5",
            blocks=1728,
            printed={"block": 1792, "request": 720, "tokens": 2_516_582},
        ),
    )


def _qwen() -> tuple[Log, ...]:
    s, b, m = Basis.STRUCTURE, Basis.BLOCKS, Basis.MEMORY
    draft = {**V28, **_drafting(7)}
    gb10 = "Qwen3.5-27B on GB10, vLLM 0.28"
    return (
        Log(
            id="kimi-01",
            model="kimi_linear",
            start={"version": "0.11.0", **OLD, "tp": 2, "capability": 8, "max_model_len": 120_000},
            basis=m,
            source="https://github.com/vllm-project/vllm/issues/28228",
            gib="2.30",
            blocks=318,
            printed={"block": 960, "padding_layers": ((1, 5.0),), "tokens": 75_840, "concurrency": 2.48},
        ),
        Log(
            id="qwen-01",
            model="qwen3_next",
            start={"version": "0.10.2", **OLD, "tp": 2, "max_model_len": 262_144},
            basis=m,
            source="Qwen3-Next-80B-A3B, vLLM 0.10.2",
            gib="44.59",
            blocks=7162,
            printed={"block": 544, "padding": 1.49, "tokens": 973_760, "concurrency": 14.77},
        ),
        Log(
            id="qwen-02",
            model="qwen3_5_27b",
            start={"version": "0.19.1", "prefix_caching": False, "max_model_len": 32_768},
            basis=b,
            source="https://github.com/vllm-project/vllm/issues/40691",
            blocks=1487,
            printed={"block": 784, "tokens": 290_864, "concurrency": 33.04},
        ),
        Log(
            id="qwen-03",
            model="qwen3_5_35b",
            start={
                "version": "0.24",
                "assume": "0.25",
                "kv_dtype": KvDtype.FP8,
                "capability": 12,
                "max_model_len": 131_072,
            },
            basis=m,
            source="https://github.com/noonghunna/club-3090/issues/612",
            gib="5.98",
            blocks=299,
            printed={"block": 2096, "request": 69, "tokens": 567_978, "concurrency": 4.33},
        ),
        Log(
            id="qwen-05",
            model="qwen3_5_27b",
            start={**V28, "tp": 2, "kv_dtype": KvDtype.FP8, "capability": 8, "max_model_len": 131_072},
            basis=m,
            source="https://github.com/mitchross/talos-argocd-proxmox/pull/1995",
            gib="4.99",
            blocks=208,
            printed={"block": 1568, "request": 90, "tokens": 302_921, "concurrency": 2.31},
        ),
        Log(
            id="qwen-06",
            model="qwen3_5_0_8b",
            start={**V28, "capability": 8, "max_model_len": 262_144},
            basis=m,
            source="Qwen3.5-0.8B on A100, vLLM 0.28",
            gib="67.08",
            blocks=10_775,
            printed={"block": 544, "padding": 2.64, "tokens": 5_788_118, "concurrency": 22.08},
        ),
        Log(
            id="qwen-08",
            model="qwen3_5_27b",
            start=V28,
            basis=s,
            source=gb10,
            blocks=469,
            printed={"tokens": 160_085, "concurrency": 39.08},
        ),
        Log(
            id="qwen-09",
            model="qwen3_5_27b",
            start=draft,
            basis=s,
            source=gb10,
            blocks=1018,
            printed={
                "block": 832,
                "padding": 1.71,
                "groups": 15,
                "request": 116,
                "tokens": 35_945,
                "concurrency": 8.78,
            },
        ),
        Log(
            id="qwen-10",
            model="qwen3_5_27b",
            start={**draft, "block_size": 816},
            basis=s,
            source=gb10,
            blocks=534,
            printed={"block": 1632, "padding": 99.51, "request": 106, "tokens": 20_634, "concurrency": 5.04},
        ),
        Log(
            id="qwen-12",
            model="qwen3_5_27b",
            start={**draft, "state_dtype": DType.F16, "max_model_len": 71_680, "max_batched_tokens": 2048},
            basis=m,
            source="Qwen3.8-27B under WSL, vLLM 0.28",
            memory=7_000_000_000,
            blocks=762,
            printed={"request": 745, "tokens": 73_315},
        ),
        Log(
            id="qwen-14",
            model="qwen3_5_27b",
            start={**V28, **_mtp(1)},
            basis=s,
            source=gb10,
            printed={"block": 800},
        ),
        Log(
            id="qwen-16",
            model="qwen3_8_flash_next",
            start={**V28, **_mtp(2)},
            basis=s,
            source="https://github.com/vllm-project/vllm/issues/54458",
            printed={"block": 1600, "padding": 0.88},
        ),
        Log(
            id="qwen-17",
            model="qwen3_5_27b",
            start={"version": "0.25", **_mtp(1)},
            basis=s,
            source="https://github.com/vllm-project/vllm/issues/49011",
            printed={"padding_layers": ((3, 6.25),)},
        ),
        Log(
            id="qwen-18",
            model="qwen3_5_35b",
            start={**V28, **_drafting(7, layers=8)},
            basis=s,
            source="https://github.com/vllm-project/vllm/issues/46462",
            printed={"padding_layers": ((2, 6.67), (6, 60.0))},
        ),
        Log(
            id="qwen-19",
            model="qwen3_5_27b",
            start={**draft, "tp": 2, "kv_dtype": KvDtype.FP8},
            basis=s,
            source="https://github.com/noonghunna/club-3090/issues/1107",
            printed={"block": 1648, "padding": 0.73},
        ),
        Log(id="misc-01", model="qwen3_5_0_8b", start=V28, basis=s, source="GPUStack docs", printed={"block": 544}),
        Log(id="misc-02", model="qwen3_5_27b", start=V28, basis=s, source="GPUStack docs", printed={"block": 784}),
    )


def _dsa() -> tuple[Log, ...]:
    def row(name: str, gib: str, blocks: int, tokens: int, times: float, **start: Any) -> Log:
        mtp = "1" if "num_spec" in start else "0"
        return Log(
            id=name,
            model="glm51",
            start={**DSA_FP8, **start},
            basis=Basis.MEMORY,
            source=f"{RTX6K}/glm-dcp{start['dcp']}-mtp{mtp}/startup.log",
            gib=gib,
            blocks=blocks,
            printed={"block": 64, "tokens": tokens, "concurrency": times},
        )

    return (
        row("dsa-01", "19.55", 5336, 341_504, 1.68, dcp=1),
        row("dsa-02", "18.51", 4988, 319_232, 1.57, dcp=1, **_mtp(1)),
        row("dsa-03", "19.47", 5314, 680_192, 3.35, dcp=2),
        row("dsa-05", "19.47", 5314, 1_360_384, 6.71, dcp=4),
        row("dsa-06", "18.42", 4965, 1_271_040, 6.27, dcp=4, **_mtp(1)),
        row("dsa-08", "14.15", 3813, 1_952_256, 9.63, dcp=8, **_mtp(1)),
        Log(
            id="dsa-09",
            model="deepseek_v32",
            start={"version": "0.13", **OLD, "tp": 8, "max_model_len": 163_840},
            basis=Basis.STRUCTURE,
            source="https://github.com/vllm-project/vllm/issues/31903",
            blocks=18_976,
            printed={"tokens": 1_214_464, "concurrency": 7.41},
        ),
    )


def _controls() -> tuple[Log, ...]:
    return (
        Log(
            id="ctl-01",
            model="llama31_8b",
            start={"version": "0.6", **OLD, "capability": 8, "max_model_len": 20_000},
            basis=Basis.MEMORY,
            source="https://github.com/vllm-project/vllm/issues/10517",
            gib="3.81",
            blocks=1952,
            printed={"bytes_per_block": 16 * 131_072, "concurrency": 1.56},
        ),
        Log(
            id="ctl-03",
            model="llama3_70b",
            start={"version": "0.7", **OLD, "max_model_len": 2048},
            basis=Basis.BLOCKS,
            source="https://github.com/vllm-project/vllm/issues/12569",
            blocks=1381,
            printed={"concurrency": 10.79},
        ),
        Log(
            id="ctl-04",
            model="llama31_8b",
            start={"version": "0.7", **OLD, "max_model_len": 2048},
            basis=Basis.BLOCKS,
            source="https://github.com/vllm-project/vllm/pull/13596",
            blocks=127_626,
            printed={"tokens": 2_042_016, "concurrency": 997.08},
        ),
        Log(
            id="ctl-06",
            model="qwen3_235b",
            start={"version": "0.9", **OLD, "tp": 4},
            basis=Basis.STRUCTURE,
            source="https://github.com/vllm-project/vllm/issues/21348",
            blocks=11_180,
            printed={"bytes_per_block": 16 * 48_128, "tokens": 178_880},
        ),
    )


LOGS: tuple[Log, ...] = (*_glm(), *_qwen(), *_dsa(), *_controls())

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
