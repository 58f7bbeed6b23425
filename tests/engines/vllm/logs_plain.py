"""Logs of models without recurrence: GLM-5.1 and DeepSeek-V3.2 behind an indexer, plain controls."""

from __future__ import annotations

from typing import Any

from modelbones.engines.vllm import KvDtype
from tests.engines.vllm.log import OLD, Basis, Log, mtp

DSA_FP8 = {
    "version": "0.20.2rc1.dev249",
    "assume": "0.22",
    "tp": 8,
    "capability": 12,
    "max_model_len": 202_752,
    "kv_dtype": KvDtype.FP8_DS_MLA,
}
RTX6K = "local-inference-lab/rtx6kpro models/glm5.1/benchmarks/glm51-v2-full-68b3569f-20260514"


def sparse_logs() -> tuple[Log, ...]:
    def row(name: str, gib: str, blocks: int, tokens: int, times: float, **start: Any) -> Log:
        drafted = "1" if "num_spec" in start else "0"
        return Log(
            id=name,
            model="glm51",
            start={**DSA_FP8, **start},
            basis=Basis.MEMORY,
            source=f"{RTX6K}/glm-dcp{start['dcp']}-mtp{drafted}/startup.log",
            gib=gib,
            blocks=blocks,
            printed={"block": 64, "tokens": tokens, "concurrency": times},
        )

    return (
        row("dsa-01", "19.55", 5336, 341_504, 1.68, dcp=1),
        row("dsa-02", "18.51", 4988, 319_232, 1.57, dcp=1, **mtp(1)),
        row("dsa-03", "19.47", 5314, 680_192, 3.35, dcp=2),
        row("dsa-05", "19.47", 5314, 1_360_384, 6.71, dcp=4),
        row("dsa-06", "18.42", 4965, 1_271_040, 6.27, dcp=4, **mtp(1)),
        row("dsa-08", "14.15", 3813, 1_952_256, 9.63, dcp=8, **mtp(1)),
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


def control_logs() -> tuple[Log, ...]:
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
