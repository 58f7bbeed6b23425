"""What the published FP8 config claims, and what `synth` declares in its place."""

from __future__ import annotations

from typing import Any

import pytest

from modelbones.errors import UnknownSchemeError
from modelbones.families.registry import build, preset, read_config
from modelbones.quant.registry import RECIPES, read_claim, read_claims
from modelbones.synth.layout import unpacked_modules
from tests import release
from tests.audit.stores import FP8_QUANTIZATION, quantised

PACKED = {name for name in release.bf16() if release.is_fp8(name)}
FP8 = frozenset({"fp8"})


def test_the_published_config_claims_the_packed_weights_and_no_others() -> None:
    claim = read_claim(quantised(release.skip_list()), place="config.json")
    assert claim is not None
    assert claim.scheme == "fp8"
    assert {name for name in release.bf16() if claim.wanted(name)} == PACKED
    assert all(claim.wanted(name) == FP8 for name in PACKED)


def test_the_claim_speaks_the_same_of_names_in_a_text_only_export() -> None:
    claim = read_claim(quantised(release.skip_list()), place="config.json")
    assert claim is not None
    assert claim.wanted("model.layers.4.mlp.experts.3.up_proj.weight") == FP8
    assert claim.wanted("model.layers.4.self_attn.q_proj.weight") == frozenset()
    assert claim.wanted("model.layers.3.self_attn.q_a_proj.weight") == FP8


def test_what_synth_declares_claims_the_same_as_the_published_list() -> None:
    skeleton = build(read_config(preset("glm-5.3-flash")))
    declared = RECIPES["fp8"].declare(unpacked_modules(skeleton, RECIPES["fp8"]))
    assert {key: declared[key] for key in FP8_QUANTIZATION} == FP8_QUANTIZATION
    listed = declared["modules_to_not_convert"]
    assert len(listed) == 1_432
    assert set(listed) <= set(release.skip_list())
    claim = read_claim(declared, place="config.json")
    assert claim is not None
    assert {name for name in release.bf16() if claim.wanted(name)} == PACKED


@pytest.mark.parametrize("entries", [None, "lm_head", 7, {"a": 1}, [1, None, ["x"]]])
def test_a_skip_list_that_is_none_says_nothing(entries: Any) -> None:
    claim = read_claim({**FP8_QUANTIZATION, "modules_to_not_convert": entries}, place="config.json")
    assert claim is not None
    assert claim.wanted("model.layers.0.mlp.up_proj.weight") == FP8


@pytest.mark.parametrize("block", [[64, 64], [128], [128, 128, 1], "128x128", 128, [True, 128]])
def test_blocks_of_another_size_cannot_be_judged_yet(block: Any) -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        read_claim({**FP8_QUANTIZATION, "weight_block_size": block}, place="config.json")
    assert caught.value.scheme.startswith("fp8 ")


def test_silence_is_a_claim_that_all_is_plain() -> None:
    (claim,) = read_claims([], place="config.json")
    assert claim.wanted("lm_head.weight") == frozenset()
    assert read_claims([("x", None)], place="config.json")[0].place == "config.json"


@pytest.mark.parametrize(
    ("quantization", "scheme"),
    [
        ({}, "None"),
        ({"quant_method": None}, "None"),
        ({"quant_method": "hqq"}, "hqq"),
        ({"quant_method": 8}, "8"),
        ({"quant_method": ["fp8"]}, "['fp8']"),
    ],
)
def test_an_unknown_method_is_refused_by_its_name(quantization: dict[str, Any], scheme: str) -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        read_claim(quantization, place="config.json")
    assert caught.value.scheme == scheme
    assert str(caught.value).startswith(f'config.json: unknown quantisation scheme "{scheme}"; expected one of ')
