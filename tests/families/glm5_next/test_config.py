from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelbones.config_file import parse_config
from modelbones.dtypes import DType
from modelbones.errors import ConfigError, ModelbonesError
from modelbones.families.glm5_next import Glm5NextConfig
from modelbones.families.registry import build, read_config, read_mapping
from modelbones.reserve import per_sequence_state_bytes
from modelbones.skeleton import Mixer, Mlp
from tests.published import GONE, RECURRENT, SPARSE, edited, flat, in_text, nested, saved_again


def _read(config: dict[str, Any]) -> Glm5NextConfig:
    typed = read_config(config)
    assert isinstance(typed, Glm5NextConfig)
    return typed


def _message(lines: list[str]) -> str:
    noun = "fault" if len(lines) == 1 else "faults"
    return f"<mapping>: {len(lines)} {noun} in this config; correct each:" + "".join(f"\n  {line}" for line in lines)


def _refusal(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as error:
        read_config(config)
    return str(error.value)


REQUIRED_SIZES = [
    "hidden_size",
    "vocab_size",
    "intermediate_size",
    "num_attention_heads",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "v_head_dim",
    "index_n_heads",
    "index_head_dim",
    "index_topk",
    "index_kpool",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "hc_mult",
    "linear_attn_config.num_heads",
    "linear_attn_config.head_dim",
    "linear_attn_config.short_conv_kernel_size",
]
"""Every size that has no meaning when it is absent and may not be zero."""

WRONG_SIZES: list[tuple[Any, str]] = [
    (GONE, "missing"),
    (None, "missing"),
    (0, "0"),
    (-4, "-4"),
    (True, "true"),
    (False, "false"),
    (4.0, "4.0"),
    ("4", '"4"'),
    ([4], "[4]"),
    ({}, "{}"),
    (float("nan"), "NaN"),
    (float("inf"), "Infinity"),
    (-float("inf"), "-Infinity"),
    (2**63, "9223372036854775808"),
]


@pytest.mark.parametrize("key", REQUIRED_SIZES)
@pytest.mark.parametrize(("value", "found"), WRONG_SIZES, ids=[found for _, found in WRONG_SIZES])
def test_a_size_is_a_positive_integer_nested_or_flat(key: str, value: Any, found: str) -> None:
    fault = f"{key}: found {found}; expected a positive integer"
    assert _refusal(edited(flat(), {key: value})) == _message([fault])
    assert _refusal(edited(nested(), in_text({key: value}))) == _message([f"text_config.{fault}"])


VISION_SIZES = [
    "hidden_size",
    "num_heads",
    "intermediate_size",
    "in_channels",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "out_hidden_size",
    "projection_intermediate_size",
]


@pytest.mark.parametrize("key", VISION_SIZES)
@pytest.mark.parametrize(("value", "found"), WRONG_SIZES[:7], ids=[found for _, found in WRONG_SIZES[:7]])
def test_every_size_of_the_tower_is_required(key: str, value: Any, found: str) -> None:
    path = f"vision_config.{key}"
    assert _refusal(edited(nested(), {path: value})) == _message(
        [f"{path}: found {found}; expected a positive integer"]
    )


WORDS = (
    "one of linear_attention, mamba, deepseek_sparse_attention, indexed_attention, sparse_attention, "
    "full_attention, attention"
)
TYPES = ["deepseek_sparse_attention" if index in SPARSE else "linear_attention" for index in range(45)]
CALLED_SO = "the layers that layer_types calls so"
NO_ROTARY = "this attention has no rotary part"
LINEAR = "linear_attn_config"


def _with(values: list[Any], index: int, value: Any) -> list[Any]:
    return [*values[:index], value, *values[index + 1 :]]


REFUSALS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no layer count": ({"num_hidden_layers": GONE}, ["num_hidden_layers: found missing; expected {layers}"]),
    "zero layers": ({"num_hidden_layers": 0}, ["num_hidden_layers: found 0; expected {layers}"]),
    "a bool of layers": ({"num_hidden_layers": True}, ["num_hidden_layers: found true; expected {layers}"]),
    "a million layers": ({"num_hidden_layers": 10**6}, ["num_hidden_layers: found 1000000; expected {layers}"]),
    "unknown layer word": (
        {"layer_types": _with(TYPES, 7, "sliding_attention")},
        [f'layer_types[7]: found "sliding_attention"; expected {WORDS}'],
    ),
    "a layer word that is no word": (
        {"layer_types": _with(_with(TYPES, 7, None), 9, ["x"])},
        [f"layer_types[7]: found null; expected {WORDS}", f'layer_types[9]: found ["x"]; expected {WORDS}'],
    ),
    "a layer word too few": (
        {"layer_types": TYPES[:-1]},
        ["layer_types: found a list of 44; expected a list of 45 words"],
    ),
    "a layer word too many": (
        {"layer_types": [*TYPES, "linear_attention"]},
        ["layer_types: found a list of 46; expected a list of 45 words"],
    ),
    "layer words in one string": (
        {"layer_types": "linear_attention"},
        ['layer_types: found "linear_attention"; expected a list of 45 words'],
    ),
    "neither words nor lists": (
        {"layer_types": GONE, f"{LINEAR}.kda_layers": GONE, f"{LINEAR}.full_attn_layers": GONE},
        ["layer_types: found missing; expected a list of 45 layer words, or both index lists of linear_attn_config"],
    ),
    "one list and no words": (
        {"layer_types": GONE, f"{LINEAR}.full_attn_layers": GONE},
        [
            f"{{path}}{LINEAR}.full_attn_layers: found missing; "
            "expected a list of 45 layer words, or both index lists of linear_attn_config"
        ],
    ),
    "the other list and no words": (
        {"layer_types": GONE, f"{LINEAR}.kda_layers": GONE},
        [
            f"{{path}}{LINEAR}.kda_layers: found missing; "
            "expected a list of 45 layer words, or both index lists of linear_attn_config"
        ],
    ),
    "lists that overlap": (
        {"layer_types": GONE, f"{LINEAR}.kda_layers": sorted([*RECURRENT, 7, 3])},
        [f"{LINEAR}.full_attn_layers: found layers 3, 7; expected no layer that {{path}}{LINEAR}.kda_layers names too"],
    ),
    "lists that miss a layer": (
        {f"{LINEAR}.kda_layers": RECURRENT[1:]},
        [
            f"{LINEAR}.kda_layers: found neither for layer 0; "
            f"expected every layer from 0 to 44 in {{path}}{LINEAR}.kda_layers or {{path}}{LINEAR}.full_attn_layers"
        ],
    ),
    "both lists empty": (
        {"layer_types": GONE, f"{LINEAR}.kda_layers": [], f"{LINEAR}.full_attn_layers": []},
        [
            f"{LINEAR}.kda_layers: found neither for layers 0, 1, 2, 3, 4, 5 and 39 more; "
            f"expected every layer from 0 to 44 in {{path}}{LINEAR}.kda_layers or {{path}}{LINEAR}.full_attn_layers"
        ],
    ),
    "lists that contradict the words": (
        {
            f"{LINEAR}.kda_layers": sorted({*RECURRENT, 3} - {4}),
            f"{LINEAR}.full_attn_layers": sorted({*SPARSE, 4} - {3}),
        },
        [
            f"{LINEAR}.kda_layers: found layer 3; expected {CALLED_SO}",
            f"{LINEAR}.kda_layers: found layer 4 left out; expected {CALLED_SO}",
            f"{LINEAR}.full_attn_layers: found layer 4; expected {CALLED_SO}",
            f"{LINEAR}.full_attn_layers: found layer 3 left out; expected {CALLED_SO}",
        ],
    ),
    "the one list there misses layers the words name": (
        {f"{LINEAR}.kda_layers": [0], f"{LINEAR}.full_attn_layers": GONE},
        [
            f"{LINEAR}.kda_layers: found layers 1, 2, 4, 5, 6, 8 and 27 more left out; expected {CALLED_SO}",
        ],
    ),
    "a 1-based list": (
        {f"{LINEAR}.full_attn_layers": [*SPARSE[1:], 45]},
        [f"{LINEAR}.full_attn_layers[10]: found 45; expected a layer index from 0 to 44, each once"],
    ),
    "a list with a bool, a float and a repeat": (
        {f"{LINEAR}.full_attn_layers": _with(_with(_with(SPARSE, 0, True), 1, 7.0), 3, 11)},
        [
            f"{LINEAR}.full_attn_layers[0]: found true; expected a layer index from 0 to 44, each once",
            f"{LINEAR}.full_attn_layers[1]: found 7.0; expected a layer index from 0 to 44, each once",
            f"{LINEAR}.full_attn_layers[3]: found 11; expected a layer index from 0 to 44, each once",
        ],
    ),
    "a list that is a number": (
        {f"{LINEAR}.kda_layers": 34},
        [f"{LINEAR}.kda_layers: found 34; expected a list of layer indices"],
    ),
    "an MLP word unknown": (
        {"mlp_layer_types": ["dense"] * 3 + ["sparse"] * 41 + ["moe"]},
        ['mlp_layer_types[44]: found "moe"; expected one of dense, sparse'],
    ),
    "an MLP word too few": (
        {"mlp_layer_types": ["dense"] * 3 + ["sparse"] * 41},
        ["mlp_layer_types: found a list of 44; expected a list of 45 words"],
    ),
    "MLP words against the count": (
        {"first_k_dense_replace": 2},
        [
            "mlp_layer_types: found layer 2; expected dense on the first 2 layers only, "
            "as {path}first_k_dense_replace says"
        ],
    ),
    "more dense layers than layers": (
        {"first_k_dense_replace": 46},
        ["first_k_dense_replace: found 46; expected an integer from 0 to 45"],
    ),
    "a negative count of dense layers": (
        {"first_k_dense_replace": -1},
        ["first_k_dense_replace: found -1; expected an integer from 0 to 45"],
    ),
    "neither MLP words nor a count": (
        {"first_k_dense_replace": GONE, "mlp_layer_types": GONE},
        ["mlp_layer_types: found missing; expected a list of 45 words, or first_k_dense_replace"],
    ),
    "top-k no multiple of the pool": (
        {"index_topk": 2047},
        ["index_topk: found 2047; expected a multiple of index_kpool, 4"],
    ),
    "a pool above top-k": ({"index_kpool": 4096}, ["index_topk: found 2048; expected a multiple of index_kpool, 4096"]),
    "keys that are not pooled": (
        {"index_kpool_compress": False},
        ["index_kpool_compress: found false; expected true: the indexer's keys are pooled"],
    ),
    "a tail flag that is no flag": (
        {"index_kpool_always_select_tail": 1},
        ["index_kpool_always_select_tail: found 1; expected true or false"],
    ),
    "indexer word unknown": (
        {"indexer_types": _with(["full"] * 45, 3, "half")},
        ['indexer_types[3]: found "half"; expected one of full, shared'],
    ),
    "an indexer word too few": (
        {"indexer_types": ["full"] * 44},
        ["indexer_types: found a list of 44; expected a list of 45 words"],
    ),
    "first sparse layer shared": (
        {"indexer_types": _with(["full"] * 45, 3, "shared")},
        [
            "indexer_types: found shared on layer 3; "
            "expected full on the first sparse layer: there is no earlier selection to share"
        ],
    ),
    "a pattern of the wrong length": (
        {"indexer_types": GONE, "index_topk_pattern": "F" * 44},
        [f'index_topk_pattern: found "{"F" * 44}"; expected 45 letters F or S'],
    ),
    "a pattern of other letters": (
        {"indexer_types": GONE, "index_topk_pattern": "f" * 45},
        [f'index_topk_pattern: found "{"f" * 45}"; expected 45 letters F or S'],
    ),
    "a pattern that disagrees": (
        {"index_topk_pattern": "FFFFFFFS" + "F" * 37},
        ["index_topk_pattern: found layer 7; expected what {path}indexer_types says"],
    ),
    "a frequency that disagrees": (
        {"index_topk_freq": 2},
        # max(i - 2 + 1, 0) % 2 of 3, 7, ..., 43 is 0: all agree; with offset 1, i % 2 is 1 on all 11.
        [],
    ),
    "a frequency and offset that disagree": (
        {"index_topk_freq": 2, "index_skip_topk_offset": 1},
        ["index_topk_freq: found layers 3, 7, 11, 15, 19, 23 and 5 more; expected what {path}indexer_types says"],
    ),
    "frequency zero": ({"index_topk_freq": 0}, ["index_topk_freq: found 0; expected a positive integer"]),
    "rotary width": (
        {"qk_rope_head_dim": 64},
        [f"qk_rope_head_dim: found 64; expected 0: {NO_ROTARY}"],
    ),
    "no rotary width": (
        {"qk_rope_head_dim": GONE},
        ["qk_rope_head_dim: found missing; expected an integer, 0 or more"],
    ),
    "a negative rotary width": (
        {"qk_rope_head_dim": -1},
        ["qk_rope_head_dim: found -1; expected an integer, 0 or more"],
    ),
    "position embeddings declared": (
        {"mla_use_nope": False},
        [f"mla_use_nope: found false; expected true: {NO_ROTARY}"],
    ),
    "the other word for it": ({"mla_nope": False}, [f"mla_nope: found false; expected true: {NO_ROTARY}"]),
    "KV heads of another number": (
        {"num_key_value_heads": 8},
        ["num_key_value_heads: found 8; expected num_attention_heads, 64"],
    ),
    "a query width that does not add up": (
        {"qk_head_dim": 192},
        ["qk_head_dim: found 192; expected qk_nope_head_dim + qk_rope_head_dim, 256"],
    ),
    "no hyper-connection": (
        {"mhc": False},
        ["mhc: found false; expected true: hyper-connections are no option of this architecture"],
    ),
    "two MTP layers": (
        {"num_nextn_predict_layers": 2},
        ["num_nextn_predict_layers: found 2; expected 0 or 1 MTP layers"],
    ),
    "a negative number of MTP layers": (
        {"num_nextn_predict_layers": -1},
        ["num_nextn_predict_layers: found -1; expected an integer, 0 or more"],
    ),
    "fewer experts than are chosen": (
        {"n_routed_experts": 7},
        ["num_experts_per_tok: found 8; expected at most n_routed_experts, 7"],
    ),
    "a negative number of shared experts": (
        {"n_shared_experts": -1},
        ["n_shared_experts: found -1; expected an integer, 0 or more"],
    ),
    "no number of shared experts": (
        {"n_shared_experts": GONE},
        ["n_shared_experts: found missing; expected an integer, 0 or more"],
    ),
    "an unknown dtype": (
        {"dtype": "int8"},
        [
            'dtype: found "int8"; expected one of bfloat16, torch.bfloat16, float16, torch.float16, '
            "float32, torch.float32"
        ],
    ),
    "a bound that is no number": (
        {f"{LINEAR}.gate_lower_bound": "-5"},
        [f'{LINEAR}.gate_lower_bound: found "-5"; expected a finite number'],
    ),
    "a bound that is infinite": (
        {f"{LINEAR}.gate_lower_bound": -float("inf")},
        [f"{LINEAR}.gate_lower_bound: found -Infinity; expected a finite number"],
    ),
    "a context of no tokens": (
        {"max_position_embeddings": 0},
        ["max_position_embeddings: found 0; expected a positive integer"],
    ),
    "a bias flag that is no flag": (
        {"attention_bias": "no"},
        ['attention_bias: found "no"; expected true or false'],
    ),
    "KDA geometry that is a list": (
        {LINEAR: [64, 128]},
        [
            f"{LINEAR}: found [64, 128]; expected an object",
            f"{LINEAR}.num_heads: found missing; expected a positive integer",
            f"{LINEAR}.head_dim: found missing; expected a positive integer",
            f"{LINEAR}.short_conv_kernel_size: found missing; expected a positive integer",
        ],
    ),
    "no heads, and no second fault at the keys that repeat them": (
        {"num_attention_heads": GONE, "qk_nope_head_dim": "256"},
        [
            "num_attention_heads: found missing; expected a positive integer",
            'qk_nope_head_dim: found "256"; expected a positive integer',
        ],
    ),
    "a rotary width that adds up, once": (
        {"qk_rope_head_dim": 64, "qk_head_dim": 320},
        [f"qk_rope_head_dim: found 64; expected 0: {NO_ROTARY}"],
    ),
}


@pytest.mark.parametrize("is_nested", [True, False], ids=["nested", "flat"])
@pytest.mark.parametrize("what", REFUSALS)
def test_each_refusal_names_key_value_and_expectation(what: str, *, is_nested: bool) -> None:
    edits, lines = REFUSALS[what]
    path = "text_config." if is_nested else ""
    config = edited(nested(), in_text(edits)) if is_nested else edited(flat(), edits)
    if not lines:
        _read(config)
        return
    # A line starts with its key path; only those that begin otherwise spell the prefix themselves.
    filled = [(line if line.startswith("{path}") else f"{{path}}{line}") for line in lines]
    filled = [line.replace("{path}", path).replace("{layers}", "an integer from 1 to 100000") for line in filled]
    assert _refusal(config) == _message(filled)


AGREE = {
    "linear_num_heads": (64, 32, f"{LINEAR}.num_heads"),
    "linear_head_dim": (128, 64, f"{LINEAR}.head_dim"),
    "linear_conv_kernel_dim": (4, 3, f"{LINEAR}.short_conv_kernel_size"),
    "linear_lower_bound": (-5.0, -4, f"{LINEAR}.gate_lower_bound"),
    "gate_lower_bound": (-5, -4.5, f"{LINEAR}.gate_lower_bound"),
    "num_local_experts": (288, 144, "n_routed_experts"),
    "num_experts_per_token": (8, 7, "num_experts_per_tok"),
    "mhc_num_residual_streams": (4, 2, "hc_mult"),
    "nextn_predict_layers": (1, 0, "num_nextn_predict_layers"),
    "torch_dtype": ("bfloat16", "float32", "dtype"),
}
"""Second spelling of a fact: the same value, another one, the first spelling."""


@pytest.mark.parametrize("alias", AGREE)
@pytest.mark.parametrize("is_nested", [True, False], ids=["nested", "flat"])
def test_two_spellings_of_one_fact_agree_or_are_refused(alias: str, *, is_nested: bool) -> None:
    same, other, first = AGREE[alias]
    base, path = (nested(), "text_config.") if is_nested else (flat(), "")
    assert build(_read(edited(base, {path + alias: same}))) == build(_read(base))
    fault = f"{path}{alias}: found {json.dumps(other)}; expected what {path}{first} says"
    assert _refusal(edited(base, {path + alias: other})) == _message([fault])


@pytest.mark.parametrize("alias", AGREE)
@pytest.mark.parametrize("is_nested", [True, False], ids=["nested", "flat"])
def test_the_second_spelling_alone_is_enough(alias: str, *, is_nested: bool) -> None:
    same, _, first = AGREE[alias]
    base, path = (nested(), "text_config.") if is_nested else (flat(), "")
    config = _read(edited(base, {path + first: GONE, path + alias: same}))
    assert build(config) == build(_read(base))
    assert f"{path}{alias}" not in config.declared.unread


@pytest.mark.parametrize("alias", [alias for alias in AGREE if alias not in ("torch_dtype", "nextn_predict_layers")])
def test_a_wrong_value_under_the_second_spelling_is_refused_there(alias: str) -> None:
    assert _refusal(edited(flat(), {alias: "x"})).startswith(
        f'<mapping>: 1 fault in this config; correct each:\n  {alias}: found "x"'
    )


@pytest.mark.parametrize(
    "word", ["deepseek_sparse_attention", "indexed_attention", "sparse_attention", "full_attention", "attention"]
)
@pytest.mark.parametrize("linear", ["linear_attention", "mamba"])
def test_every_word_for_a_layer_reads_to_the_same_skeleton(word: str, linear: str) -> None:
    types = [word if index in SPARSE else linear for index in range(45)]
    assert build(_read(edited(nested(), in_text({"layer_types": types})))) == build(_read(nested()))


@pytest.mark.parametrize(
    "edits",
    [
        {"layer_types": GONE},
        {"layer_types": None},
        {f"{LINEAR}.kda_layers": GONE},
        {f"{LINEAR}.full_attn_layers": None},
        {f"{LINEAR}.kda_layers": GONE, f"{LINEAR}.full_attn_layers": GONE},
        {f"{LINEAR}.kda_layers": RECURRENT[::-1]},
        {"mlp_layer_types": GONE},
        {"first_k_dense_replace": GONE},
        {"indexer_types": GONE},
        {"indexer_types": None, "index_topk_pattern": "F" * 45},
        {"indexer_types": GONE, "index_topk_pattern": ["full"] * 45},
        {"indexer_types": GONE, "index_topk_freq": 1},
        {"index_topk_pattern": "F" * 45, "index_topk_freq": 1, "index_skip_topk_offset": 7},
        {"indexer_types": ["full" if index in SPARSE else "shared" for index in range(45)]},
        {"num_key_value_heads": GONE, "qk_head_dim": GONE},
        {"mla_use_nope": GONE, "mla_nope": True},
        {"mhc": GONE},
        {"index_kpool_compress": GONE},
        {f"{LINEAR}.gate_lower_bound": GONE},
        {f"{LINEAR}.gate_lower_bound": None},
        {"dtype": "torch.bfloat16"},
        {"dtype": GONE},
        {"attention_bias": GONE},
        {"max_position_embeddings": GONE},
        {"model_type": GONE},
        {"model_type": "glm5_next"},
        {"linear_attn_config.safe_gate": True},
    ],
)
def test_each_way_to_say_the_same_reads_to_the_same_skeleton(edits: dict[str, Any]) -> None:
    plain = _read(nested())
    assert build(_read(edited(nested(), in_text(edits)))) == build(plain)


def test_flat_kda_geometry_without_linear_attn_config_is_enough() -> None:
    edits = {LINEAR: GONE, "linear_num_heads": 64, "linear_head_dim": 128, "linear_conv_kernel_dim": 4}
    for config in (edited(nested(), in_text(edits)), edited(nested(), in_text({**edits, LINEAR: None}))):
        assert build(_read(config)) == build(_read(nested()))


def test_a_flat_file_reads_to_the_same_text_stack() -> None:
    text_only, whole = build(_read(flat())), build(_read(nested()))
    assert text_only.layers == whole.layers
    assert text_only.mtp == whole.mtp
    assert text_only.outer == whole.outer
    assert text_only.budget(2) == whole.budget(2)
    assert (text_only.tower, len(whole.tower)) == ((), 14 + 11)


@pytest.mark.parametrize("config", [flat(), nested()])
def test_the_text_model_type_reads_like_the_main_one(config: dict[str, Any]) -> None:
    typed = _read({**config, "model_type": "glm5_next_text"})
    assert typed.model_type == "glm5_next_text"
    assert build(typed).layers == build(_read(nested())).layers


@pytest.mark.parametrize("inner", ["glm5_next_vision", "llama", 5, ["glm5_next_text"], {}])
def test_another_inner_model_type_is_refused(inner: Any) -> None:
    fault = f'text_config.model_type: found {json.dumps(inner)}; expected "glm5_next_text"'
    assert _refusal(edited(nested(), {"text_config.model_type": inner})) == _message([fault])


@pytest.mark.parametrize("value", [[], "x", 3, True, [{}]])
@pytest.mark.parametrize("key", ["text_config", "vision_config", "quantization_config"])
def test_a_section_that_is_no_object_is_refused(key: str, value: Any) -> None:
    fault = f"{key}: found {json.dumps(value)}; expected an object"
    assert _refusal({**nested(), key: value}) == _message([fault])


def test_what_transformers_saves_reads_to_the_same_skeleton() -> None:
    again = _read(saved_again())
    assert build(again) == build(_read(nested()))
    assert "text_config.bos_token_id" not in again.declared.unread
    assert "text_config.linear_num_heads" not in again.declared.unread


def test_all_faults_of_a_file_are_raised_at_once_in_reading_order() -> None:
    config = edited(
        nested(),
        {
            "tie_word_embeddings": True,
            "text_config.layer_types": _with(TYPES, 0, "conv"),
            "text_config.hidden_size": 0,
            "text_config.linear_attn_config.num_heads": "64",
            "text_config.index_kpool": GONE,
            "text_config.num_experts_per_tok": 300,
            "text_config.num_nextn_predict_layers": 2,
            "text_config.mlp_layer_types": ["dense"],
            "text_config.indexer_types": ["full"],
            "text_config.attention_bias": 0,
            "vision_config.out_hidden_size": None,
            "vision_config.hidden_size": 1000,
            "quantization_config": "fp8",
        },
    )
    assert _refusal(config) == _message(
        [
            f'text_config.layer_types[0]: found "conv"; expected {WORDS}',
            'text_config.linear_attn_config.num_heads: found "64"; expected a positive integer',
            "text_config.index_kpool: found missing; expected a positive integer",
            "text_config.num_experts_per_tok: found 300; expected at most n_routed_experts, 288",
            "text_config.hidden_size: found 0; expected a positive integer",
            "text_config.num_nextn_predict_layers: found 2; expected 0 or 1 MTP layers",
            "tie_word_embeddings: found true; expected what text_config.tie_word_embeddings says",
            "text_config.mlp_layer_types: found a list of 1; expected a list of 45 words",
            "text_config.indexer_types: found a list of 1; expected a list of 45 words",
            "vision_config.out_hidden_size: found missing; expected a positive integer",
            "vision_config.hidden_size: found 1000; expected a multiple of num_heads, 16",
            "text_config.attention_bias: found 0; expected true or false",
            'quantization_config: found "fp8"; expected an object',
        ]
    )


def test_an_empty_object_of_this_family_misses_every_required_key_at_once() -> None:
    refusal = _refusal({"model_type": "glm5_next"})
    lines = refusal.splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == [
        "num_hidden_layers",
        "num_attention_heads",
        "q_lora_rank",
        "kv_lora_rank",
        "qk_nope_head_dim",
        "v_head_dim",
        "qk_rope_head_dim",
        "linear_attn_config.num_heads",
        "linear_attn_config.head_dim",
        "linear_attn_config.short_conv_kernel_size",
        "index_n_heads",
        "index_head_dim",
        "index_topk",
        "index_kpool",
        "n_routed_experts",
        "num_experts_per_tok",
        "n_shared_experts",
        "moe_intermediate_size",
        "hidden_size",
        "vocab_size",
        "intermediate_size",
        "hc_mult",
    ]


ASSUMED = {
    "indexer_types": "full on every sparse layer: each runs its own indexer",
    "num_nextn_predict_layers": "0: no MTP layer is declared",
    "dtype": "bfloat16: matrices are sized as the published release stores them",
    "attention_bias": "false: no projection has one",
}


@pytest.mark.parametrize("key", ASSUMED)
@pytest.mark.parametrize("value", [GONE, None], ids=["absent", "null"])
def test_an_absent_key_is_listed_with_its_declared_meaning(key: str, value: Any) -> None:
    assert _read(nested()).declared.assumed == ()
    (assumed,) = _read(edited(nested(), in_text({key: value}))).declared.assumed
    assert (assumed.path, assumed.meaning) == (f"text_config.{key}", ASSUMED[key])
    assert assumed.source


def test_an_absent_head_choice_means_a_head_of_its_own() -> None:
    config = edited(nested(), {"tie_word_embeddings": GONE, "text_config.tie_word_embeddings": GONE})
    (assumed,) = _read(config).declared.assumed
    assert assumed.meaning == "false: the head is a tensor of its own"
    assert not _read(config).tie_word_embeddings


def test_an_absent_bias_of_the_tower_means_biases() -> None:
    (assumed,) = _read(edited(nested(), {"vision_config.attention_bias": GONE})).declared.assumed
    assert (assumed.path, assumed.meaning) == ("vision_config.attention_bias", "true: the blocks have biases")


def test_an_absent_offset_of_the_indexers_means_2() -> None:
    config = edited(nested(), in_text({"indexer_types": GONE, "index_topk_freq": 2}))
    (assumed,) = _read(config).declared.assumed
    assert assumed.path == "text_config.index_skip_topk_offset"
    assert assumed.meaning == "2: the first layers run their own indexer"


def test_keys_no_one_reads_are_listed_and_nothing_else() -> None:
    config = edited(
        nested(),
        {
            "text_config.rope_theta": 1e6,
            "text_config.linear_attn_config.safe_gate": True,
            "vision_config.rope_parameters": {"rope_theta": 1, "extra": None},
            "image_token_id": 154854,
            "text_config.index_skip_topk_offset": 2,
        },
    )
    assert sorted(set(_read(config).declared.unread) - set(_read(nested()).declared.unread)) == [
        "image_token_id",
        "text_config.index_skip_topk_offset",
        "text_config.linear_attn_config.safe_gate",
        "text_config.rope_theta",
        "vision_config.rope_parameters.rope_theta",
    ]
    assert _read(nested()).declared.unread == (
        "text_config.routed_scaling_factor",
        "text_config.scoring_func",
        "text_config.norm_topk_prob",
        "text_config.hc_eps",
        "text_config.hc_sinkhorn_iters",
        "text_config.hidden_act",
        "text_config.swiglu_limit",
        "text_config.rms_norm_eps",
        "vision_config.image_size",
        "vision_config.hidden_act",
        "vision_config.rms_norm_eps",
        "vision_config.swiglu_limit",
    )


@pytest.mark.parametrize("key", ["num_key_value_heads", "mla_use_nope", "max_position_embeddings", LINEAR])
def test_a_null_is_not_listed_as_unread(key: str) -> None:
    """Keys that were looked at and found null were listed as read by no one."""
    edits = {key: None, "linear_num_heads": 64, "linear_head_dim": 128, "linear_conv_kernel_dim": 4}
    assert f"text_config.{key}" not in _read(edited(nested(), in_text(edits))).declared.unread


def test_the_file_says_what_it_declares() -> None:
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    config = _read({**nested(), "quantization_config": block})
    assert config.declared.quantization == (("quantization_config", block),)
    assert config.declared.architectures == ("Glm5NextForConditionalGeneration",)
    assert config.declared.place == "<mapping>"
    assert config.model_type == "glm5_next"
    assert not any(path.startswith("quantization_config") for path in config.declared.unread)
    assert _read(nested()).declared.quantization == ()


def test_a_quantisation_block_in_the_text_section_is_found_too() -> None:
    config = edited(nested(), {"text_config.quantization_config": {"quant_method": "fp8"}})
    assert _read(config).declared.quantization == (("text_config.quantization_config", {"quant_method": "fp8"}),)


def test_the_typed_config_holds_one_field_a_fact() -> None:
    config = _read(nested())
    assert config.num_hidden_layers == 45
    assert [i for i, mixer in enumerate(config.mixers) if mixer is Mixer.DSA] == SPARSE
    assert [i for i, mlp in enumerate(config.mlps) if mlp is Mlp.DENSE] == [0, 1, 2]
    assert [i for i, runs in enumerate(config.runs_indexer) if runs] == SPARSE
    assert (config.hidden_size, config.vocab_size, config.hc_mult) == (4096, 154_880, 4)
    assert (config.dtype, config.tie_word_embeddings) == (DType.BF16, False)
    assert config.max_position_embeddings == 1_048_576
    assert config.index_kpool_always_select_tail is True
    assert config.vision is not None
    assert config.vision.depth == 24


@given(freq=st.integers(1, 9), offset=st.integers(0, 9), layers=st.integers(1, 40), every=st.integers(1, 5))
def test_a_frequency_runs_an_indexer_where_transformers_rule_says_full(
    freq: int, offset: int, layers: int, every: int
) -> None:
    # transformers 5.23: "full" if (max(i - offset + 1, 0) % freq) == 0 else "shared".
    full = [max(index - offset + 1, 0) % freq == 0 for index in range(layers)]
    sparse = [index % every == every - 1 for index in range(layers)]
    edits = {
        "num_hidden_layers": layers,
        "layer_types": ["sparse_attention" if is_sparse else "linear_attention" for is_sparse in sparse],
        LINEAR: {"num_heads": 64, "head_dim": 128, "short_conv_kernel_size": 4},
        "mlp_layer_types": GONE,
        "first_k_dense_replace": 0,
        "indexer_types": GONE,
        "index_topk_freq": freq,
        "index_skip_topk_offset": offset,
    }
    config = edited(flat(), edits)
    first = sparse.index(True) if True in sparse else None
    if first is not None and not full[first]:
        assert "there is no earlier selection to share" in _refusal(config)
        return
    assert _read(config).runs_indexer == tuple(s and f for s, f in zip(sparse, full, strict=True))


# Arbitrary damage: whatever stands where, it reads or it is refused as ours.

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 70)
    | st.sampled_from([2**31, 2**63 - 1, 2**63, 10**30, 10**400, -(10**400)])
    | st.floats()
    | st.sampled_from(["", "glm5_next", "full", "shared", "dense", "linear_attention", "float32", "\ud800", "S" * 45])
    | st.text(max_size=5)
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [path, *(deep for key, inner in value.items() for deep in _paths(inner, (*path, key)))]
    if isinstance(value, list):
        return [path, *((*path, index) for index in (0, len(value) - 1) if value)]
    return [path]


_SPOTS = [
    *[path for path in _paths(nested()) if path],
    *[("text_config", alias) for alias in AGREE],
    ("text_config", "index_topk_pattern"),
    ("text_config", "index_topk_freq"),
    ("text_config", "index_skip_topk_offset"),
    ("quantization_config",),
    ("dtype",),
]


_LONGER = settings(max_examples=5 * settings().max_examples)


@st.composite
def _damaged(draw: st.DrawFn) -> dict[str, Any]:
    config = nested()
    for path in draw(st.lists(st.sampled_from(_SPOTS), min_size=1, max_size=3)):
        section: Any = config
        for step in path[:-1]:
            inner = section.get(step) if isinstance(section, dict) else None
            if not isinstance(inner, dict | list):
                break
            section = inner
        else:
            if isinstance(section, list):
                if section:
                    section[min(step, len(section) - 1) if isinstance(step := path[-1], int) else 0] = draw(_JSON)
            elif draw(st.booleans()) and draw(st.booleans()):
                section.pop(path[-1], None)
            else:
                section[path[-1]] = draw(_JSON)
    if draw(st.integers(0, 3)) == 0 and isinstance(config.get("text_config"), dict):
        config = {**config["text_config"], "model_type": config.get("model_type")}
    return config


@_LONGER
@given(_damaged(), st.integers(0, 2**40), st.booleans())
def test_a_damaged_config_reads_or_is_refused_as_ours(config: dict[str, Any], tokens: int, spec_on: bool) -> None:
    with suppress(ModelbonesError):
        per_sequence_state_bytes(config, tokens, spec_on)
    try:
        typed = read_config(config)
    except ModelbonesError as error:
        text = str(error)
        assert all(line.isprintable() for line in text.split("\n"))
        text.encode()
        return
    skeleton = build(typed)
    budget = skeleton.budget()
    assert budget.peak(tokens) == budget.for_sequence(tokens) >= 0
    assert per_sequence_state_bytes(typed, tokens, spec_on).total() >= 0
    assert skeleton.structural_tensor_set()


@_LONGER
@given(_damaged())
def test_a_damaged_config_reads_from_its_file_as_from_its_mapping(config: dict[str, Any]) -> None:
    try:
        raw = json.dumps(config).encode()
    except ValueError:
        return
    try:
        parsed = parse_config(raw, place="<mapping>")
    except ModelbonesError:
        return
    outcomes = []
    for values in (config, parsed):
        try:
            outcomes.append(("read", build(read_mapping(values, place="<mapping>"))))
        except ModelbonesError as error:
            outcomes.append(("refused", str(error)))  # type: ignore[arg-type]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
def test_the_type_at_top_level_is_the_one_the_model_was_saved_in(key: str) -> None:
    """Bug: a model cast and saved by transformers was refused, its text section still naming the old type."""
    config = _read({**nested(), key: "float32"})
    assert config.dtype is DType.F32
    assert _read({**nested(), key: None}).dtype is DType.BF16
    assert f"dtype: found {json.dumps('int8')}" in _refusal({**nested(), key: "int8"})
