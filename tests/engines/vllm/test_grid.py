"""Every point of the grid: what the releases' own allocator code answered, reproduced whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelbones.engines.vllm import (
    CachePlan,
    EngineRefusedError,
    Kind,
    KvDtype,
    SpecMethod,
    TooSmall,
    VllmSettings,
    plan_states,
)
from modelbones.units import GIB
from tests.engines.vllm.models import MODELS

Point = dict[str, str]
CAPABILITY = {"h200": 9, "b200": 10, "gb10": 12}
KV_DTYPE = {"bf16": KvDtype.AUTO, "fp8": KvDtype.FP8, "fp8_ds_mla": KvDtype.FP8_DS_MLA}
LETTERS = {Kind.RECURRENT: "M", Kind.KV: "F", Kind.LATENT: "A", Kind.TAIL: "T"}


def _points() -> list[Point]:
    lines = Path(__file__).with_name("grid.tsv").read_text(encoding="utf-8").splitlines()
    names, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [dict(zip(names, row, strict=True)) for row in rows]


POINTS = _points()


def _name(point: Point) -> str:
    keys = ("version", "model", "device", "cuda", "kv_dtype", "spec", "context", "memory", "prefix_caching")
    return f"vllm@{point['version']}-tp{point['tp']}-" + "-".join(point[key] for key in keys[1:])


def settings_of(point: Point) -> VllmSettings:
    num_spec = 0 if point["spec"] == "none" else int(point["spec"].removeprefix("mtp:"))
    return VllmSettings(
        version=point["version"],
        tp=int(point["tp"]),
        kv_dtype=KV_DTYPE[point["kv_dtype"]],
        spec_method=SpecMethod.MTP if num_spec else SpecMethod.NONE,
        num_spec=num_spec,
        max_model_len=int(point["context"]),
        max_batched_tokens=8192,
        prefix_caching=point["prefix_caching"] == "on",
        capability=CAPABILITY[point["device"]],
        cuda_major=int(point["cuda"].split(".")[0]),
    )


def _groups(plan: CachePlan) -> str:
    return " ".join(
        f"{LETTERS[group.kind]}{group.num_layers}x{group.block_tokens}={group.nbytes}"
        f":{group.blocks(plan.max_model_len)}"
        for group in plan.groups
    )


def _refusal(small: TooSmall) -> str:
    sizes = (small.needed_bytes, small.available_bytes)
    return "/".join((str(small.max_context), *(str(round(nbytes / GIB, 2)) for nbytes in sizes)))


@pytest.mark.parametrize("point", POINTS, ids=_name)
def test_the_allocator_answers_as_the_release_did(point: Point) -> None:
    settings, model, memory = settings_of(point), MODELS[point["model"]], int(point["memory"])
    if point["verdict"] == "refused":
        with pytest.raises(EngineRefusedError, match="fp8_ds_mla without rope on SM90"):
            plan_states(model, settings, memory=memory)
        return
    plan = plan_states(model, settings, memory=memory)
    assert (plan.block_tokens, plan.bytes_per_block) == (int(point["block"]), int(point["bytes_per_block"]))
    pages = (plan.alignment.state_page, plan.alignment.padded_page)
    assert pages == (int(point["state_page"]), int(point["padded_page"]))
    assert plan.padding_percent == float(point["padding"])
    assert _groups(plan) == point["groups"]
    assert plan.blocks_per_request == int(point["blocks_per_request"])
    if point["verdict"] == "too_small":
        assert plan.too_small is not None
        assert _refusal(plan.too_small) == point["too_small"]
        return
    assert plan.too_small is None
    assert (plan.num_blocks, plan.logged_tokens) == (int(point["num_blocks"]), int(point["tokens"]))
    # 0.19 printed two decimals, later ones were kept whole.
    assert float(point["concurrency"]) in (plan.logged_concurrency, round(plan.logged_concurrency, 2))


def test_the_grid_is_whole() -> None:
    assert len(POINTS) == 917
    assert {point["version"] for point in POINTS} == {"0.19.1", "0.28.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"}
    assert sum(point["verdict"] == "refused" for point in POINTS) == 53
    assert sum(point["verdict"] == "too_small" for point in POINTS) == 11
