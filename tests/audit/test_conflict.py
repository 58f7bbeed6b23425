"""The config's quantisation claim against what is stored, both ways, with counts."""

from __future__ import annotations

from typing import Any

import pytest

from modelbones.errors import UnknownSchemeError
from tests import release
from tests.audit.stores import FP8_QUANTIZATION, judge, only_error, quantised, said, tiny_config
from tests.release import LAYERS, Stores

PLAIN = release.bf16(release.TINY)
PACKED = release.fp8(release.TINY)
LEFT_ALONE = [name.removesuffix(".weight") for name in PLAIN if not release.is_fp8(name, release.TINY)]
CLAIM = quantised(LEFT_ALONE)
EXPERT = f"{LAYERS}3.mlp.experts.0.gate_proj"


def unpacked(*modules: str) -> Stores:
    """The FP8 release with these modules stored plain, and no scale beside them."""
    stores = dict(PACKED)
    for module in modules:
        stores[f"{module}.weight"] = ("BF16", stores[f"{module}.weight"][1])
        del stores[f"{module}.weight_scale_inv"]
    return stores


def test_a_claim_on_everything_of_an_unquantised_checkpoint_is_one_conflict() -> None:
    result = judge(PLAIN, tiny_config(), quantization=CLAIM)
    error = only_error(result)
    assert error.code.value == "quant_conflict"
    assert error.detail["count"] == 98
    assert error.detail["kinds"] == {"dense_mlp": 9, "dsa": 8, "experts": 72, "shared_experts": 9}
    assert result.is_complete, "a claim has no say in whether the tensors are all there"


def test_the_published_claim_on_the_bf16_release_is_one_conflict_over_all_it_should_pack() -> None:
    result = judge(release.bf16(), quantization=quantised(release.skip_list()))
    error = only_error(result)
    assert error.detail["count"] == 37_338
    assert error.detail["kinds"] == {"dense_mlp": 9, "dsa": 48, "experts": 37_152, "shared_experts": 129}


def test_packed_weights_that_no_config_claims_are_one_conflict() -> None:
    error = only_error(judge(PACKED, tiny_config()))
    assert error.code.value == "quant_conflict"
    assert error.detail["count"] == 98
    assert error.message == (
        "model.language_model.layers.0.mlp.gate_proj.weight: 98 linear weights are (9 dense mlp, 8 dsa, 72 experts, "
        "9 shared experts; this is the first) stored quantised, though config.json leaves them unquantised; "
        "expected a config that says what is stored; claim these modules in the quantisation config"
    )


def test_the_fp8_release_against_a_config_that_claims_nothing_is_one_conflict() -> None:
    error = only_error(judge(release.fp8()))
    assert error.detail["count"] == 37_338


def test_one_packed_module_that_the_claim_excludes_is_a_conflict_about_it() -> None:
    error = only_error(judge(PACKED, tiny_config(), quantization=quantised([*LEFT_ALONE, EXPERT])))
    assert (error.code.value, error.name) == ("quant_conflict", f"{EXPERT}.weight")
    assert error.detail == {"count": 1, "kinds": {"experts": 1}, "clash": "unclaimed"}


def test_one_plain_module_that_the_claim_covers_is_a_conflict_about_it() -> None:
    error = only_error(judge(unpacked(EXPERT), tiny_config(), quantization=CLAIM))
    assert (error.code.value, error.name) == ("quant_conflict", f"{EXPERT}.weight")
    assert error.detail == {"count": 1, "kinds": {"experts": 1}, "clash": "unpacked"}
    assert error.message == (
        f"{EXPERT}.weight: 1 linear weight is (1 experts; this is the first) stored unquantised, though "
        "config.json quantization_config claims fp8 for them; expected a config that says what is stored; "
        "exclude these modules in the quantisation config: what is stored wins"
    )


def test_conflicts_both_ways_are_two_findings() -> None:
    other = EXPERT.replace("gate_proj", "up_proj")
    result = judge(unpacked(EXPERT), tiny_config(), quantization=quantised([*LEFT_ALONE, other]))
    assert sorted(said(result)) == [
        ("error", "quant_conflict", f"{EXPERT}.weight"),
        ("error", "quant_conflict", f"{other}.weight"),
    ]


def test_a_module_left_plain_and_excluded_is_no_finding() -> None:
    """A build may leave more modules alone than the release, if its config says so."""
    assert judge(unpacked(EXPERT), tiny_config(), quantization=quantised([*LEFT_ALONE, EXPERT])).findings == ()


@pytest.mark.parametrize("first", [True, False])
def test_without_a_claim_a_weight_without_its_scale_is_one_finding_and_leaves_the_others_alone(first: bool) -> None:
    """Bug: weights alike were judged by the first of them, so that one lost scale condemned all."""
    scales = [name for name in PACKED if ".mlp.experts." in name and name.endswith("gate_proj.weight_scale_inv")]
    gone = scales[0] if first else scales[-1]
    stores = {name: stored for name, stored in PACKED.items() if name != gone}
    result = judge(stores, tiny_config())
    others = [finding for finding in result.findings if finding.code.value != "quant_conflict"]
    assert len(others) == 1, said(result)
    assert others[0].name in (gone, gone.removesuffix("_scale_inv"))
    assert others[0].code.value in ("scale", "dtype")


@pytest.mark.parametrize(
    ("quantization", "scheme"),
    [
        ({"quant_method": "bitsandbytes"}, "bitsandbytes"),
        ({"quant_method": "gptq", "bits": 3}, "gptq of 3 bits"),
        ({}, "None"),
        ({"quant_method": "exl3"}, "exl3"),
        ({**FP8_QUANTIZATION, "weight_block_size": [1, 128]}, "fp8 with weight_block_size [1, 128]"),
    ],
)
def test_a_scheme_that_cannot_be_judged_is_refused_by_name(quantization: dict[str, Any], scheme: str) -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        judge(PLAIN, tiny_config(), quantization=quantization)
    assert caught.value.scheme == scheme
    assert str(caught.value).startswith(f'config.json quantization_config: unknown quantisation scheme "{scheme}"; ')
    assert str(caught.value).endswith("; no verdict is given on a scheme that cannot be judged")


def test_fp8_without_a_block_size_claims_a_factor_for_each_tensor_or_row() -> None:
    """Block factors under such a claim, or none at all, contradict it; one factor a tensor does not."""
    per_tensor = {key: value for key, value in FP8_QUANTIZATION.items() if key != "weight_block_size"}
    name = f"{release.LAYERS}0.mlp.up_proj.weight"
    others = [each.removesuffix(".weight") for each in PLAIN if each != name]
    claim = {**per_tensor, "modules_to_not_convert": others}
    one_factor = {**PLAIN, name: ("F8_E4M3", PLAIN[name][1]), f"{name}_scale": ("F32", ())}
    assert judge(one_factor, tiny_config(), quantization=claim).findings == ()
    (conflict,) = judge(PLAIN, tiny_config(), quantization=claim).findings
    assert (conflict.code.value, conflict.name) == ("quant_conflict", name)
