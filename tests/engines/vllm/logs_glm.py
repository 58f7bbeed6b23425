"""GLM-5.3-Flash logs: release images of 2026-08 and 2026-09, forks, other vendors' builds."""

from __future__ import annotations

from modelbones.engines.vllm import KvDtype
from tests.engines.vllm.log import Basis, Log, drafting, mtp

M = 1_048_576
IMAGE = "0.1.dev20051+g487ecf187"
SLOTTED = {**drafting(7), "drafter_block": 64}
"""DFlash2 with its window laid into the latent's slots: block ids of 64 tokens, no bytes."""
GB10 = {"version": IMAGE, "tp": 2, "kv_dtype": KvDtype.FP8_DS_MLA, "capability": 12, **SLOTTED}
LATER = {"version": "0.1.dev20051"}
MIAAI = "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks"


def glm_logs() -> tuple[Log, ...]:
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
            start={**LATER, "tp": 4, "max_model_len": 131_072, **mtp(3)},
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
            start={**LATER, "tp": 2, "max_model_len": M, **mtp(3)},
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
            start={**LATER, "tp": 2, "latent_row_bytes": 288, **mtp(3)},
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
            start={**LATER, "tp": 8, **mtp(3)},
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
