"""What the engine would not start with, or no source tells: one test a refusal, exact text."""

from __future__ import annotations

from typing import Any

import pytest

from modelbones.dtypes import DType
from modelbones.engines.vllm import (
    EngineRefusedError,
    KvDtype,
    SpecMethod,
    UnknownVersionError,
    VllmSettings,
    known_versions,
    plan_states,
)
from modelbones.errors import UsageError
from tests.engines.vllm.models import MODELS, full, latent_layer, model, states, window

MTP = {"spec_method": SpecMethod.MTP, "num_spec": 3}
DRAFT = {"spec_method": SpecMethod.DRAFT, "num_spec": 7, "drafter": states([window(8, 128, 2048)], is_draft=True)}
DTYPES = "name another dtype, device or version"
TP = "name another tp"

REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "fp8_ds_mla on Hopper before 0.32",
        "glm53",
        {"version": "0.31", "kv_dtype": KvDtype.FP8_DS_MLA},
        "vllm: kv_dtype: found fp8_ds_mla without rope on SM90 in 0.31.0; "
        "expected auto or fp8, or 0.32 and later; " + DTYPES,
    ),
    (
        "sparse attention on Ampere",
        "glm53",
        {"capability": 8},
        "vllm: kv_dtype: found compute capability 8; expected 9 or more: no sparse latent backend is older; " + DTYPES,
    ),
    (
        "bf16 rows on SM120",
        "glm53",
        {"capability": 12, "kv_dtype": KvDtype.BF16},
        "vllm: kv_dtype: found bf16 on compute capability 12; expected auto, fp8 or fp8_ds_mla: "
        "its backend stores that only; " + DTYPES,
    ),
    (
        "a sparse layout for keys and values",
        "llama31_8b",
        {"kv_dtype": KvDtype.FP8_DS_MLA},
        "vllm: kv_dtype: found fp8_ds_mla for keys and values; expected auto, bf16 or fp8; "
        "the ds_mla layouts belong to sparse latent attention",
    ),
    (
        "a sparse layout for a dense latent",
        "kimi_linear",
        {"kv_dtype": KvDtype.FP8_DS_MLA},
        "vllm: kv_dtype: found fp8_ds_mla for latent attention without an indexer; expected auto, bf16 or fp8; "
        "the ds_mla layouts belong to sparse attention",
    ),
    (
        "float16 for KDA",
        "glm53",
        {"state_dtype": DType.F16},
        "vllm: state_dtype: found F16 for a recurrent state in 0.33.0; expected F32 or BF16; "
        "name one of them, or none for the default",
    ),
    (
        "bf16 for KDA before 0.30",
        "kimi_linear",
        {"version": "0.28", "state_dtype": DType.BF16},
        "vllm: state_dtype: found BF16 for a recurrent state in 0.28.0; expected F32; "
        "name one of them, or none for the default",
    ),
    (
        "drafting over KDA in 0.22",
        "kimi_linear",
        {"version": "0.22", **DRAFT},
        "vllm: num_spec: found 7 drafted tokens over a KDA conv window in 0.22; "
        "expected a version whose rule for it is known; name 0.19 or 0.25 and later",
    ),
    (
        "ranks that divide no heads",
        "glm53",
        {"tp": 3},
        f"vllm: tp: found 3 ranks for 64 heads; expected a count that divides them; {TP}",
    ),
    (
        "ranks that neither divide nor repeat key heads",
        "llama_6_kv",
        {"tp": 4},
        f"vllm: tp: found 4 ranks for 6 kv heads of layer 0; expected a count that divides them; {TP}",
    ),
    (
        "a context shared by ranks there are not",
        "glm_moe_dsa",
        {"tp": 4, "dcp": 8},
        "vllm: dcp: found 8 over 4 tensor-parallel ranks; expected a divisor of the ranks that hold the same rows: "
        "they share the context; lower dcp or raise tp",
    ),
    (
        "a context shared by ranks that hold other heads",
        "llama31_8b",
        {"tp": 8, "dcp": 2},
        "vllm: dcp: found 2 over 8 tensor-parallel ranks that repeat 8 key heads 1 times; "
        "expected a divisor of the ranks that hold the same rows: they share the context; lower dcp or raise tp",
    ),
    (
        "glm5_next before its release",
        "glm53",
        {"version": "0.28"},
        "vllm: model: found glm5_next in 0.28.0; expected 0.30 or later; name a version that knows the model",
    ),
    (
        "a drafter beside an indexer",
        "glm_moe_dsa",
        DRAFT,
        "vllm: groups: found index and latent and window states in one model; expected a mix whose layout is known; "
        "leave the drafter out, or give its own block where a fork lays it into the latent's slots",
    ),
    (
        "a drafter beside glm5_next's groups",
        "glm53",
        DRAFT,
        "vllm: groups: found index and latent and recurrent and tail and window states in one model; "
        "expected a mix whose layout is known; "
        "leave the drafter out, or give its own block where a fork lays it into the latent's slots",
    ),
    (
        "pages that have no common size",
        "uneven",
        {},
        "vllm: groups: found pages of 24576 and 65536 bytes; expected one a multiple of the other; "
        "the engine cannot make them one size; name another block size or dtype",
    ),
]

ODD = {
    "llama_6_kv": model("llama", [full(6, 128)] * 2, (24,)),
    "uneven": model("gpt_oss", [full(8, 128), window(3, 128, 128)], (24,)),
    "latents": model("deepseek_v3", [latent_layer(64)] * 2, (128,)),
    "nothing": model("llama", [], (8,)),
}


def start(**given: Any) -> VllmSettings:
    return VllmSettings(**{"version": "0.33", "max_model_len": 4096, **given})


@pytest.mark.parametrize(("name", "given", "text"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_a_start_is_refused_with_its_reason(name: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(EngineRefusedError) as caught:
        plan_states(ODD.get(name) or MODELS[name], start(**given), num_blocks=1)
    assert str(caught.value) == text


def test_key_heads_may_be_repeated() -> None:
    """Four key heads over eight ranks: each holds one, as over four."""
    on_8, on_4 = (plan_states(MODELS["qwen3_5_27b"], start(tp=tp), num_blocks=1) for tp in (8, 4))
    assert on_8.alignment.padded_page // on_8.block_tokens == on_4.alignment.padded_page // on_4.block_tokens == 1024


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(UnknownVersionError) as caught:
        plan_states(MODELS["glm53"], start(version="0.34.1"), num_blocks=1)
    assert caught.value.known == known_versions()
    assert str(caught.value) == (
        'vllm: version: found "0.34.1"; expected one of 0.19.1, 0.22, 0.25, 0.27, 0.28.0, 0.30.0, 0.31.0, 0.32.0, '
        "0.33.0, 0.1.dev20051; name one of them to assume its rules, and the answer says so"
    )


def test_an_unknown_version_with_an_assumed_one_is_labelled() -> None:
    plan = plan_states(MODELS["glm53"], start(version="0.34.1", assume="0.33"), num_blocks=1)
    assert (plan.is_assumed, plan.rules.version) == (True, "0.33.0")
    assert not plan_states(MODELS["glm53"], start(assume="0.31"), num_blocks=1).is_assumed


@pytest.mark.parametrize(
    ("spelled", "version"),
    [("0.31", "0.31.0"), ("v0.31.0", "0.31.0"), ("0.22.0", "0.22"), ("0.19", "0.19.1"), ("0.31.0+cu129", "0.31.0")],
)
def test_a_version_is_known_by_its_spellings(spelled: str, version: str) -> None:
    assert start(version=spelled).rules.version == version


@pytest.mark.parametrize("spelled", ["0.31.1", "0.29", "0", "0.3", "", "nightly", "0.19.0"])
def test_a_neighbour_is_not_the_version(spelled: str) -> None:
    with pytest.raises(UnknownVersionError):
        start(version=spelled).rules  # noqa: B018


USAGE: list[tuple[str, dict[str, Any], str]] = [
    ("no ranks", {"tp": 0}, "vllm: tp: found 0; expected at least 1; name a real count"),
    ("no context", {"max_model_len": 0}, "vllm: max_model_len: found 0; expected at least 1; name a real count"),
    ("no block", {"block_size": 0}, "vllm: block_size: found 0; expected at least 1 token; name a real size"),
    (
        "a method that drafts nothing",
        {"spec_method": SpecMethod.MTP},
        "vllm: num_spec: found 0 with method mtp; expected at least 1 token with a method, 0 without; "
        "name both or neither",
    ),
    (
        "tokens no one drafts",
        {"num_spec": 3},
        "vllm: num_spec: found 3 with method none; expected at least 1 token with a method, 0 without; "
        "name both or neither",
    ),
    (
        "a drafter that does not draft",
        {**DRAFT, **MTP},
        "vllm: drafter: found states with method mtp; expected them with method draft only; name the method",
    ),
    (
        "a compute capability no table has",
        {"capability": 11},
        "vllm: capability: found 11; expected 7, 8, 9, 10 or 12; name the GPU's major compute capability",
    ),
]


@pytest.mark.parametrize(("given", "text"), [pytest.param(*row[1:], id=row[0]) for row in USAGE])
def test_settings_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        start(**given)
    assert str(caught.value) == text


def test_a_dense_latents_block_is_asked_for() -> None:
    with pytest.raises(UsageError, match="found none for latent attention") as caught:
        plan_states(ODD["latents"], start(), num_blocks=1)
    assert str(caught.value) == (
        "vllm: block_size: found none for latent attention; expected one, its default is the "
        "backend's (16, 32, 64 or 128); name the one the engine logs"
    )
    assert plan_states(ODD["latents"], start(block_size=64), num_blocks=1).bytes_per_block == 2 * 64 * 1152


def test_mtp_without_an_mtp_layer_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        plan_states(MODELS["llama31_8b"], start(**MTP), num_blocks=1)
    assert str(caught.value) == (
        "vllm: spec_method: found mtp; expected a model with an MTP layer; draft otherwise or not at all"
    )


def test_a_model_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        plan_states(ODD["nothing"], start(), num_blocks=1)
    assert str(caught.value) == (
        "vllm: model: found no state of any layer; expected at least one; there is no cache to plan"
    )


@pytest.mark.parametrize("given", [{}, {"memory": 1, "num_blocks": 1}, {"memory": -1}, {"num_blocks": -1}])
def test_memory_is_given_once(given: dict[str, int]) -> None:
    with pytest.raises(UsageError) as caught:
        plan_states(MODELS["llama31_8b"], start(), **given)
    assert str(caught.value) == (
        f"vllm: memory: found {given.get('memory')} bytes and {given.get('num_blocks')} blocks; "
        "expected one of the two, 0 or more; name the other by itself"
    )


@pytest.mark.parametrize("context", [0, -1, 4097])
def test_a_context_past_the_longest_is_refused(context: int) -> None:
    plan = plan_states(MODELS["llama31_8b"], start(), num_blocks=1)
    with pytest.raises(UsageError) as caught:
        plan.max_sequences(context)
    assert str(caught.value) == (
        f"vllm: context: found {context}; expected 1 to 4096, the longest sequence; "
        "raise max_model_len or lower the context"
    )


def test_no_sequences_have_no_longest_context() -> None:
    plan = plan_states(MODELS["llama31_8b"], start(), num_blocks=1)
    with pytest.raises(UsageError) as caught:
        plan.max_context(0)
    assert str(caught.value) == ("vllm: concurrency: found 0; expected at least 1; name the sequences served at once")
