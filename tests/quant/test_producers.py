"""Each producer's words for modules: what its own loaders read in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.cli import main
from modelbones.errors import UnknownSchemeError
from modelbones.quant.claim import PLAIN, Claim
from modelbones.quant.registry import _CLAIMS, read_claim, read_claims
from tests import release
from tests.audit.builds import BUILDS, MLX, NVIDIA, SPARK, nvidia_chooser, spark_chooser
from tests.audit.stores import judge, said, tiny_config, write_file

PLACE = "config.json"
EXPERT = "model.language_model.layers.3.mlp.experts.7.up_proj"


def claim_of(words: dict[str, Any]) -> Claim:
    claim = read_claim(words, place=PLACE)
    assert claim is not None
    return claim


def wanted(words: dict[str, Any], module: str) -> list[str]:
    return sorted(claim_of(words).wanted(f"{module}.weight"))


# modelopt


@pytest.mark.parametrize("name", [name for name, build in BUILDS.items() if not build.names_no_modules])
def test_each_builds_claim_speaks_of_its_packed_weights_and_no_others(name: str) -> None:
    build = BUILDS[name]
    claim = claim_of(build.claim)
    for weight, (_, shape) in release.bf16(release.TINY).items():
        form = build.form_of(weight)
        if form is not None:
            assert form.scheme in claim.wanted(weight), weight
        elif len(shape) == 2 and weight.endswith(".weight") and "embed" not in weight:
            assert not claim.wanted(weight), weight


MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


@pytest.mark.parametrize(
    ("entry", "module", "is_left"),
    [
        ("lm_head", "lm_head", True),
        ("*gate*", "model.layers.3.mlp.gate", True),
        ("*gate*", "model.layers.3.mlp.gate_proj", True),
        ("model.visual*", "model.visual.blocks.0.attn.qkv", True),
        ("model.layers.5*", "model.language_model.layers.5.mlp.experts.0.up_proj", True),
        ("model.language_model.layers.5*", "model.language_model.layers.5.eh_proj", True),
        ("model.language_model.layers.4.*", "model.language_model.layers.45.eh_proj", False),
        ("model.layers.3.mlp", "model.layers.3.mlp.up_proj", True),
        ("model.layers.3.mlp", "model.layers.3.mlp_gate", False),
        ("up_proj", "model.layers.3.mlp.up_proj", False),
        ("model.layers.[12].mlp", "model.layers.2.mlp.up_proj", True),
    ],
)
def test_modelopt_ignores_by_shell_patterns_and_by_modules_above(entry: str, module: str, is_left: bool) -> None:
    assert wanted({**MODELOPT, "ignore": [entry]}, module) == ([] if is_left else ["nvfp4"])
    inner = {"quant_algo": "NVFP4", "exclude_modules": [entry], "kv_cache_quant_algo": "FP8"}
    beside = {"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": inner}
    assert wanted(beside, module) == ([] if is_left else ["nvfp4"])


MIXED = {
    "producer": {"name": "modelopt", "version": "0.44.0"},
    "quantization": {
        "quant_algo": "MIXED_PRECISION",
        "exclude_modules": ["mtp*"],
        "quantized_layers": {
            "model.language_model.layers.0.mlp.experts": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
            "model.layers.3.self_attn.q_proj": {"quant_algo": "FP8"},
            "model.layers.3.self_attn.k_proj": {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"},
            "model.layers.3.self_attn.v_proj": {"quant_algo": "UNQUANTIZED"},
            "model.layers.3.self_attn.o_proj": None,
            "mtp.layers.0.mlp.experts": {"quant_algo": "FP8_PB_WO"},
        },
    },
}


@pytest.mark.parametrize(
    ("module", "schemes"),
    [
        ("model.language_model.layers.0.mlp.experts.5.up_proj", ["nvfp4"]),
        ("model.layers.0.mlp.experts.5.up_proj", ["nvfp4"]),
        ("model.language_model.layers.3.self_attn.q_proj", ["fp8-channel", "fp8-tensor"]),
        ("model.layers.3.self_attn.k_proj", ["fp8-channel"]),
        ("model.layers.3.self_attn.v_proj", []),
        ("model.layers.3.self_attn.o_proj", []),
        ("model.layers.4.self_attn.q_proj", []),
        ("mtp.layers.0.mlp.experts.0.up_proj", []),
        ("lm_head", []),
    ],
)
def test_quantized_layers_name_modules_or_what_they_lie_in(module: str, schemes: list[str]) -> None:
    """Bug: only a module's full name was looked up, so experts named by their stack were left out."""
    assert wanted(MIXED, module) == schemes


def test_groups_with_targets_speak_of_these_modules_only() -> None:
    """Bug: without `quantized_layers`, mixed precision was claimed of every linear module there is."""
    groups = {
        "group_nvfp4_routed_experts": {"targets": ["model.language_model.layers.3.mlp.experts"]},
        "group_mxfp8_mtp_routed_experts": {"targets": ["model.language_model.layers.5.mlp.experts"]},
    }
    words = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "config_groups": groups}
    assert "nvfp4" in wanted(words, EXPERT)
    assert wanted(words, "model.language_model.layers.4.self_attn.q_proj") == []


@pytest.mark.parametrize("algorithm", ["W4A8_AWQ", "W4A8_MXFP4_FP8", None, 4, ["NVFP4"]])
def test_an_unknown_modelopt_algorithm_is_refused_by_name(algorithm: Any) -> None:
    with pytest.raises(UnknownSchemeError, match="modelopt "):
        read_claim({**MODELOPT, "quant_algo": algorithm}, place=PLACE)


def test_an_unknown_algorithm_of_one_module_is_refused_by_name() -> None:
    """Bug: it was taken to be any scheme at all."""
    words = {**MODELOPT, "quant_algo": "MIXED_PRECISION", "quantized_layers": {"x": {"quant_algo": "W4A8_AWQ"}}}
    with pytest.raises(UnknownSchemeError, match='unknown quantisation scheme "modelopt W4A8_AWQ"'):
        read_claim(words, place=PLACE)


# compressed-tensors


def compressed(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = {f"group_{number}": group for number, group in enumerate(groups)}
    return {"quant_method": "compressed-tensors", "config_groups": named, **more}


def group(layout: str | None, *targets: str, **weights: Any) -> dict[str, Any]:
    return {**({} if layout is None else {"format": layout}), "targets": list(targets), "weights": weights}


def test_compressed_groups_are_asked_in_turn_and_ignore_wins() -> None:
    words = compressed(
        group("nvfp4-pack-quantized", r"re:.*experts.*up_proj"),
        group("float-quantized", r"re:.*experts.*", strategy="block"),
        group("pack-quantized", "model.layers.0.mlp.up_proj", num_bits=8),
        ignore=["lm_head", r"re:.*layers\.4\..*"],
        format="mixed-precision",
    )
    assert wanted(words, EXPERT) == ["nvfp4-pack"]
    assert wanted(words, EXPERT.replace("up_proj", "down_proj")) == ["fp8"]
    assert wanted(words, "model.layers.0.mlp.up_proj") == ["int8-pack"]
    assert wanted(words, EXPERT.replace("layers.3", "layers.4")) == []
    assert wanted(words, "model.layers.0.mlp.down_proj") == wanted(words, "lm_head") == []


@pytest.mark.parametrize(
    ("layout", "weights", "schemes"),
    [
        ("pack-quantized", {"num_bits": 4, "type": "int"}, ["int4-pack"]),
        ("pack-quantized", {"num_bits": 8, "type": "int"}, ["int8-pack"]),
        ("pack-quantized", {}, ["int4-pack", "int8-pack"]),
        ("float-quantized", {"strategy": "channel"}, ["fp8-channel"]),
        ("float-quantized", {"strategy": "tensor"}, ["fp8-tensor"]),
        ("naive-quantized", {}, ["fp8", "fp8-channel", "fp8-tensor"]),
        ("mxfp4-pack-quantized", {}, ["mxfp4-pack"]),
        ("mxfp8-quantized", {}, ["mxfp8"]),
        ("dense", {}, []),
    ],
)
def test_a_compressed_format_is_as_narrow_as_its_words(
    layout: str, weights: dict[str, Any], schemes: list[str]
) -> None:
    """Bug: 8-bit words passed for a claim of 4."""
    assert wanted(compressed(group(layout, "Linear", **weights)), EXPERT) == schemes
    assert wanted(compressed(group(None, "Linear", **weights), format=layout), EXPERT) == schemes


@pytest.mark.parametrize(
    ("layout", "weights", "said_of_it"),
    [
        ("marlin-24", {}, "marlin-24"),
        ("int-quantized", {}, "int-quantized"),
        ("mixed-precision", {}, "mixed-precision"),
        ("pack-quantized", {"num_bits": 3}, "pack-quantized of 3 bits"),
        ("pack-quantized", {"num_bits": [4]}, "pack-quantized of [4] bits"),
        ("naive-quantized", {"type": "int"}, "naive-quantized of integers"),
        (None, {}, "None"),
    ],
)
def test_a_compressed_format_that_cannot_be_judged_is_refused_by_name(
    layout: str | None, weights: dict[str, Any], said_of_it: str
) -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        read_claim(compressed(group(layout, "Linear", **weights)), place=PLACE)
    assert caught.value.scheme == f"compressed-tensors {said_of_it}"


@pytest.mark.parametrize(
    "entries",
    [["re:(?i)LM_HEAD", "re:x"], ["re:(?P<a>x)", "re:(?P<a>y)"], ["re:(", "re:*", "re:a{99999999999}"], ["re:"]],
)
def test_patterns_that_do_not_go_together_or_are_none_are_read_one_by_one(entries: list[str]) -> None:
    """Bug: joined into one pattern, flags and group names stopped the program."""
    words = compressed(group("pack-quantized", "Linear", num_bits=4), ignore=entries)
    is_left = entries[0] in ("re:(?i)LM_HEAD", "re:")
    assert wanted(words, "lm_head") == ([] if is_left else ["int4-pack"])


# Quark, AWQ, GPTQ, FP8


def test_quark_layers_by_pattern_and_exclusions() -> None:
    words = {
        "quant_method": "quark",
        "global_quant_config": {"weight": {"dtype": "fp4"}},
        "layer_quant_config": {"*self_attn*": {"weight": [{"dtype": "fp8_e4m3"}]}},
        "exclude": ["lm_head", "model.visual.blocks.0.attn.qkv", "re:.*mlp.gate$"],
    }
    assert wanted(words, EXPERT) == ["mxfp4"]
    assert wanted(words, "model.layers.0.self_attn.o_proj") == ["fp8", "fp8-channel", "fp8-tensor"]
    assert wanted(words, "lm_head") == wanted(words, "model.layers.3.mlp.gate") == []
    assert wanted(words, "model.visual.blocks.0.attn.qkv") == []
    assert wanted(words, "model.visual.blocks.1.attn.qkv") == ["mxfp4"]


@pytest.mark.parametrize("dtype", ["int8", None, ["fp4"], {"a": 1}, 4])
def test_an_unknown_quark_type_is_refused_by_name(dtype: Any) -> None:
    """Bug: a type that is a list stopped the program."""
    words = {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": dtype}}}
    with pytest.raises(UnknownSchemeError) as caught:
        read_claim(words, place=PLACE)
    assert caught.value.scheme == f"quark {dtype}"


def test_awq_leaves_names_alone_that_hold_an_entry_and_the_head() -> None:
    words = {"quant_method": "awq", "bits": 4, "version": "gemm", "modules_to_not_convert": ["visual", "mlp.gate."]}
    assert wanted(words, "model.visual.blocks.0.attn.qkv") == wanted(words, "lm_head") == []
    assert wanted(words, EXPERT) == ["awq-int4"]


@pytest.mark.parametrize(
    ("more", "scheme"),
    [({"bits": 8}, "awq gemm of 8 bits"), ({"version": "GEMV"}, "awq GEMV of 4 bits"), ({"bits": None}, None)],
)
def test_awq_of_another_layout_is_refused_by_name(more: dict[str, Any], scheme: str | None) -> None:
    """Bug: any number of bits was taken to be 4."""
    with pytest.raises(UnknownSchemeError) as caught:
        read_claim({"quant_method": "awq", **more}, place=PLACE)
    assert caught.value.scheme == (scheme or "awq gemm of None bits")


def test_gptq_leaves_it_to_what_is_stored_which_modules_are_packed_and_not_how() -> None:
    """Bug: any scheme at all passed under a claim of GPTQ."""
    claim = claim_of({"quant_method": "gptq", "bits": 4})
    assert claim.wanted("x.weight") == {PLAIN, "gptq-int4", "gptq-int8"} == claim.of_others
    assert claim.scheme == "gptq-int4 or gptq-int8"
    build = BUILDS["nvidia"]
    (error,) = [
        entry
        for entry in said(judge(build.stores, tiny_config(), quantization={"quant_method": "gptq", "bits": 4}))
        if entry[0] == "error"
    ]
    assert error[1] == "quant_conflict"


def test_fp8_may_call_its_list_ignored_layers() -> None:
    words = {"quant_method": "fp8", "weight_block_size": [128, 128], "ignored_layers": ["model.layers.3"]}
    assert wanted(words, EXPERT) == []
    assert wanted(words, EXPERT.replace(".3.", ".4.")) == ["fp8"]


# MLX


def test_mlx_speaks_of_the_modules_it_names_and_leaves_the_rest_to_what_is_stored() -> None:
    claim = claim_of(MLX)
    assert claim.wanted("lm_head.weight") == {"mlx-affine", "mlx-mx"}
    assert claim.wanted("model.language_model.layers.3.self_attn.kv_b_proj.weight") == frozenset()
    assert claim.wanted(f"{EXPERT}.weight") == claim.of_others == {PLAIN, "mlx-affine", "mlx-mx"}
    assert read_claim({"group_size": 64, "bits": 4, "mode": "affine"}, place=PLACE) is None


def test_an_mlx_module_said_to_be_packed_or_not_and_stored_otherwise_is_a_conflict() -> None:
    """Bug: what MLX says of single modules was not read."""
    build = BUILDS["mlx"]
    head = "lm_head.weight"
    plain = {name: each for name, each in build.stores.items() if not name.startswith("lm_head.")}
    plain[head] = release.bf16(release.TINY)[head]
    for stores, claim in ((plain, MLX), (build.stores, {**MLX, "lm_head": False})):
        result = judge(stores, tiny_config(), quantization=claim)
        assert [entry for entry in said(result) if entry[0] == "error"] == [("error", "quant_conflict", head)]


def test_a_packed_embedding_conflicts_with_no_mlx_claim() -> None:
    stores = dict(BUILDS["mlx"].stores)
    name = f"{release.TRUNK}embed_tokens"
    stores |= {f"{name}.weight": ("U32", (512, 16)), f"{name}.scales": ("BF16", (512, 2))}
    stores[f"{name}.biases"] = ("BF16", (512, 2))
    assert judge(stores, tiny_config(), quantization=MLX).findings == ()


@pytest.mark.parametrize("bits", [None, "4", 4.0, True, [4]])
def test_mlx_without_a_number_of_bits_is_refused(bits: Any) -> None:
    with pytest.raises(UnknownSchemeError, match="mlx without bits"):
        read_claim({"bits": bits, "group_size": 64}, place=PLACE)


# Several at once, through the command line


def written(folder: Path, name: str, config: dict[str, Any], beside: dict[str, Any] | None = None) -> str:
    write_file(folder / "model.safetensors", BUILDS[name].stores)
    (folder / "config.json").write_text(json.dumps({**tiny_config(), **config}))
    if beside is not None:
        (folder / "hf_quant_config.json").write_text(json.dumps(beside))
    return str(folder)


def checked(folder: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["check", folder, "--json"])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, report


def test_both_mlx_keys_are_one_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"quantization": MLX, "quantization_config": MLX}
    code, report = checked(written(tmp_path, "mlx", config), capsys)
    assert (code, report["findings"]) == (0, [])


def test_a_claim_in_text_config_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = {**tiny_config()["text_config"], "quantization_config": NVIDIA}
    code, report = checked(written(tmp_path, "nvidia", {"text_config": text}), capsys)
    assert code == 0
    code, report = checked(written(tmp_path, "spark", {"text_config": text}), capsys)
    assert code == 1
    assert "text_config.quantization_config" in report["findings"][0]["message"]


def forgetful(words: dict[str, Any], key: str) -> dict[str, Any]:
    return {**words, key: [entry for entry in words[key] if "layers.5" not in entry]}


def test_two_files_that_say_the_same_wrong_thing_are_one_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = forgetful(NVIDIA, "ignore")
    inner = {"quant_algo": "NVFP4", "exclude_modules": claim["ignore"]}
    beside = {"producer": {"name": "modelopt"}, "quantization": inner}
    code, report = checked(written(tmp_path, "nvidia", {"quantization_config": claim}, beside), capsys)
    (error,) = (each for each in report["findings"] if each["severity"] == "error")
    assert (code, error["code"], report["verdict"]) == (1, "quant_conflict", "complete")
    # Of the MTP layer, attention is covered by a pattern of its own.
    assert error["detail"]["kinds"] == {"experts": 24, "mtp_head": 1, "router": 1, "shared_experts": 3}
    assert "config.json quantization_config and " in error["message"]
    assert "hf_quant_config.json claims nvfp4" in error["message"]


def test_one_file_of_two_that_is_wrong_is_named_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "exclude_modules": []}}
    _, report = checked(written(tmp_path, "nvidia", {"quantization_config": NVIDIA}, beside), capsys)
    (error,) = (each for each in report["findings"] if each["severity"] == "error")
    assert "config.json quantization_config" not in error["message"]


def test_mixed_precision_in_both_files_is_no_conflict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark_chooser is not nvidia_chooser
    layers = {"quant_algo": "MIXED_PRECISION", "quantized_layers": SPARK["quantized_layers"]}
    beside = {"producer": {"name": "modelopt"}, "quantization": layers}
    code, report = checked(written(tmp_path, "spark", {"quantization_config": SPARK}, beside), capsys)
    assert (code, report["findings"]) == (0, [])


@pytest.mark.parametrize(
    ("words", "scheme"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "modelopt W4A8_AWQ"),
        ({"quant_method": "quark"}, "quark None"),
        ({"quant_method": "exl3", "bits": 3.05}, "exl3"),
    ],
)
def test_a_scheme_that_cannot_be_judged_is_exit_4_with_its_name(
    words: dict[str, Any], scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", written(tmp_path, "nvidia", {"quantization_config": words})]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f'unknown quantisation scheme "{scheme}"' in captured.err


# Any JSON at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        *("quant_algo", "ignore", "exclude_modules", "quantized_layers", "quantization", "config_groups", "format"),
        *("global_quant_config", "layer_quant_config", "exclude", "bits", "group_size", "modules_to_not_convert"),
        *("weight_block_size", "targets", "weights", "weight", "dtype", "producer", "version", "g", "lm_head"),
    ]
)
VALUES = st.sampled_from(
    [
        *("NVFP4", "MIXED_PRECISION", "Linear", "fp4", "pack-quantized", "re:(", "re:.*", "*[", "modelopt", "name"),
        *([128, 128], 4, 8, ["Linear"], ["re:(?i)x", "re:(?P<a>x)", "re:(?P<a>)"], {"name": "modelopt"}),
    ]
)
NESTED = st.recursive(
    JSON | VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=12
)
METHODS = st.sampled_from([*_CLAIMS, None, "x"]) | JSON


@given(METHODS, st.dictionaries(WORDS | st.text(max_size=6), NESTED, max_size=8))
def test_whatever_a_config_says_is_read_or_refused_in_our_words(method: Any, words: dict[str, Any]) -> None:
    """Bug: a Quark type that is a list, and patterns that do not join, stopped the program."""
    quantization = {"quant_method": method, **words}
    try:
        claims = read_claims([(PLACE, quantization)], place=PLACE)
    except UnknownSchemeError:
        return
    for claim in claims:
        for name in (f"{EXPERT}.weight", "lm_head.weight", "model.layers.0.self_attn.q_proj.weight"):
            assert claim.wanted(name) <= {PLAIN, *claim.schemes}
        assert isinstance(claim.scheme, str)


def test_modelopt_that_quantises_the_kv_cache_alone_claims_no_weight() -> None:
    claim = read_claim(
        {"quant_method": "modelopt", "quant_algo": None, "kv_cache_quant_algo": "FP8"}, place="config.json"
    )
    assert claim is not None
    assert claim.wanted("model.layers.0.mlp.up_proj.weight") == frozenset()
