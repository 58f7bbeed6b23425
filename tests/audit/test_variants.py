"""The builds people really have: counts and bytes of their own headers, and nothing found."""

from __future__ import annotations

import re
from functools import partial
from math import prod

import pytest

from modelbones.audit import Audit, Verdict
from modelbones.dtypes import DType
from modelbones.findings import Code, Severity
from modelbones.tensors import Group
from tests.audit.stores import judge
from tests.release import LAYERS, Stores, bf16
from tests.variants import (
    DENSE,
    experts_of,
    fp8_blocks,
    mlx_affine,
    mxfp4,
    mxfp8,
    nvfp4,
    nvfp4_compressed,
    nvfp4_compressed_with_input,
    nvfp4_with_input,
    packed,
    retyped,
    transformers_names,
    without,
)

ALL = 321_323_031_390
"""Parameters of the release: (642,646,653,816 bytes - 2 more for each of 295,518 values in F32) / 2."""
TRUNK_LAYERS = range(3, 45)


def is_mtp(name: str) -> bool:
    return name.startswith(f"{LAYERS}45.")


def is_small(name: str) -> bool:
    leaf = name.rpartition(".")[2]
    return re.fullmatch(r"A_log|dt_bias|e_score_correction_bias|hc_\w+_(base|scale)", leaf) is not None


def payload(stores: Stores) -> int:
    return sum(prod(shape) * DType(dtype).bits // 8 for dtype, shape in stores.values())


def libertai() -> Stores:
    return packed(nvfp4, experts_of(*TRUNK_LAYERS, 45))


def libertai_with_input() -> Stores:
    return packed(nvfp4_with_input, experts_of(*TRUNK_LAYERS, 45))


def nvidia() -> Stores:
    in_trunk = experts_of(*TRUNK_LAYERS)
    stores = packed(nvfp4_with_input, lambda name: in_trunk(name) or DENSE.fullmatch(name) is not None)
    stores = retyped(stores, "F32", lambda name: name.endswith("_conv1d.weight"))
    return retyped(stores, "BF16", lambda name: ".hc_" in name)


def redhat() -> Stores:
    stores = packed(nvfp4_compressed_with_input, experts_of(*TRUNK_LAYERS))
    stores = packed(fp8_blocks, experts_of(45), stores)
    return retyped(stores, "BF16", lambda name: is_small(name) and not is_mtp(name))


def without_mtp() -> Stores:
    return without(packed(nvfp4_compressed, experts_of(*TRUNK_LAYERS)), is_mtp)


def quark() -> Stores:
    return packed(mxfp4, experts_of(*(layer for layer in TRUNK_LAYERS if layer not in (3, 5, 6))))


VARIANTS = {
    "LibertAIDAI/GLM-5.3-Flash-NVFP4@9e0d74e3": (libertai, 113_074, 194_644_803_576),
    "LibertAIDAI/GLM-5.3-Flash-NVFP4@caca4e6a": (libertai_with_input, 150_226, 194_644_952_184),
    "nvidia/GLM-5.3-Flash-NVFP4@423acf37": (nvidia, 147_661, 204_419_110_596),
    "RedHatAI/GLM-5.3-Flash-NVFP4": (redhat, 148_498, 197_816_133_372),
    "compressed-tensors NVFP4 without layer 45": (without_mtp, 110_457, 190_198_265_848),
    "Quark MXFP4, layers 3, 5, 6 and 45 in BF16": (quark, 72_466, 227_486_055_288),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_published_build_has_its_own_count_and_bytes_and_is_complete(variant: str) -> None:
    make, tensors, nbytes = VARIANTS[variant]
    stores = make()
    assert (len(stores), payload(stores)) == (tensors, nbytes)
    result = judge(stores, quantization=_as_stored())
    assert (result.tensors, result.nbytes) == (tensors, nbytes)
    errors = [finding for finding in result.findings if finding.severity is Severity.ERROR]
    has_mtp = any(map(is_mtp, stores))
    assert [error.code for error in errors] == ([] if has_mtp else [Code.GROUP_ABSENT])
    assert result.groups[Group.TRUNK].verdict is Verdict.COMPLETE
    assert result.groups[Group.VISION].verdict is Verdict.COMPLETE
    # Layer 45 by hand: 249,828,864 + 16,384 + 67,133,440 + 2,360,448 + 50,331,648 + 14,495,514,624 bytes
    # = 14,865,185,408, of them 288 values of 4 bytes: (14,865,185,408 - 288 * 4) / 2 + 288 parameters.
    mtp = (14_865_185_408 - 288 * 4) // 2 + 288
    assert result.parameters == (ALL if has_mtp else ALL - mtp)
    assert (len(result.structural.missing), len(result.structural.unexpected)) == (0 if has_mtp else 20, 0)


def _as_stored() -> dict[str, object]:
    """A claim of a producer that names no modules: only what is stored counts here."""
    return {"bits": 4, "group_size": 64}


def schemes(result: Audit, group: Group) -> dict[str, int]:
    return {scheme: count for scheme, count in result.groups[group].schemes.items() if count}


def test_schemes_may_differ_by_group_and_are_counted_so() -> None:
    result = judge(redhat(), quantization=_as_stored())
    # 42 layers x 288 experts x 3; layer 45: 288 x 3.
    assert schemes(result, Group.TRUNK) == {"nvfp4-pack": 36_288, "none": 37_534 - 36_288}
    assert schemes(result, Group.MTP) == {"fp8": 864, "none": 25}
    assert result.scheme == "fp8+nvfp4-pack"


@pytest.mark.parametrize(("pack", "scheme"), [(mxfp8, "mxfp8"), (fp8_blocks, "fp8"), (mxfp4, "mxfp4")])
def test_an_mtp_layer_in_a_scheme_of_its_own_is_complete(pack: object, scheme: str) -> None:
    stores = packed(pack, experts_of(45), packed(nvfp4, experts_of(*TRUNK_LAYERS)))  # type: ignore[arg-type]
    result = judge(stores, quantization=_as_stored())
    assert result.findings == ()
    assert schemes(result, Group.MTP) == {scheme: 864, "none": 25}


def test_layers_of_one_kind_may_be_in_different_schemes() -> None:
    stores = packed(mxfp8, experts_of(7), packed(fp8_blocks, experts_of(5), packed(nvfp4, experts_of(9, 11))))
    result = judge(stores, quantization=_as_stored())
    assert result.findings == ()
    assert schemes(result, Group.TRUNK) == {"none": 37_534 - 4 * 864, "nvfp4": 2 * 864, "fp8": 864, "mxfp8": 864}


def test_small_tensors_in_bf16_are_one_warning_a_kind_that_says_the_risk() -> None:
    """Case A05: a conversion that rounds 180 hyper-connection scales and bases makes noise."""
    result = judge(retyped(bf16(), "BF16", lambda name: ".hc_" in name and is_small(name)))
    assert result.is_complete
    assert [finding.severity for finding in result.findings] == [Severity.WARNING] * 4
    assert sum(int(str(finding.detail["count"])) for finding in result.findings) == 180
    assert all("18/23 to 1/23" in finding.why for finding in result.findings)


def modelopt(*, has_mtp: bool) -> dict[str, object]:
    """nvidia's config: dense MLPs and trunk experts packed; layer 45 was forgotten at first."""
    ignore = [
        "lm_head",
        "model.visual*",
        *(f"model.language_model.layers.{layer}.self_attn*" for layer in range(45)),
        *(f"model.language_model.layers.{layer}.mlp.gate" for layer in TRUNK_LAYERS),
        *(f"model.language_model.layers.{layer}.mlp.shared_experts*" for layer in TRUNK_LAYERS),
        *(["model.language_model.layers.45*", "model.layers.45*"] if has_mtp else []),
    ]
    return {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ignore}


def test_an_ignore_list_that_forgets_the_mtp_layer_is_one_conflict_with_its_counts() -> None:
    """Case A09 in full: 864 experts, 8 of attention and indexer, the router, 3 shared, `eh_proj`."""
    result = judge(nvidia(), quantization=modelopt(has_mtp=False))
    (error,) = (finding for finding in result.findings if finding.severity is Severity.ERROR)
    assert error.code is Code.QUANT_CONFLICT
    assert error.detail["count"] == 864 + 8 + 1 + 3 + 1 == 877
    assert error.detail["kinds"] == {"dsa": 8, "experts": 864, "mtp_head": 1, "router": 1, "shared_experts": 3}
    assert "exclude these modules" in error.fix
    assert result.is_complete
    assert result.groups[Group.MTP].verdict is Verdict.COMPLETE


def test_an_ignore_list_that_names_the_mtp_layer_conflicts_with_nothing() -> None:
    result = judge(nvidia(), quantization=modelopt(has_mtp=True))
    assert [finding for finding in result.findings if finding.severity is Severity.ERROR] == []


def test_a_plain_weight_under_a_claim_of_nvfp4_is_a_conflict_and_not_a_fault_of_the_file() -> None:
    """Case A07: the KDA projections are plain, and the exclusions must say so."""
    claim = modelopt(has_mtp=True)
    claim["ignore"] = [entry for entry in claim["ignore"] if "layers.5." not in entry]  # type: ignore[attr-defined]
    result = judge(nvidia(), quantization=claim)
    (error,) = (finding for finding in result.findings if finding.severity is Severity.ERROR)
    # q, k, v, b, f_a, f_b, g_a, g_b and o of KDA layer 5, its router and 3 shared matrices.
    assert (error.code, error.detail["kinds"]) == (Code.QUANT_CONFLICT, {"kda": 9, "router": 1, "shared_experts": 3})
    assert result.is_complete


def test_a_file_saved_with_module_names_is_mapped_and_lacks_only_the_mtp_layer() -> None:
    """Case A01: 1,609 names, 524 of them spelled as transformers spells them."""
    stores = transformers_names(bf16())
    assert len(stores) == 1_609
    result = judge(stores)
    absent, renamed = result.findings
    assert (absent.code, absent.name, absent.severity) == (Code.GROUP_ABSENT, "mtp", Severity.ERROR)
    assert (renamed.code, renamed.name, renamed.severity) == (Code.RENAMED, "trunk", Severity.WARNING)
    assert renamed.detail["mapped"] == 270 + 136 + 34 + 84 == 524
    assert renamed.detail["kinds"] == {
        "forget_gate": 136,
        "fused_conv": 34,
        "hyper_connection": 270,
        "packed_experts": 84,
    }
    raw, logical = result.structural_raw, result.structural
    assert (raw.required, raw.bound, len(raw.missing), len(raw.unexpected), raw.deferred) == (1_047, 519, 528, 440, 650)
    assert (logical.bound, len(logical.missing), logical.unexpected) == (1_027, 20, ())
    assert all(name.startswith(f"{LAYERS}45.") for name in logical.missing)
    assert result.groups[Group.TRUNK].verdict is Verdict.COMPLETE


def test_a_tower_under_mlx_names_and_packed_forget_gates_are_two_things_and_no_fault() -> None:
    """Cases A02 and A03: 347 tower tensors renamed, 136 sidecars of 68 packed projections."""

    def is_gate(name: str) -> bool:
        return name.endswith(("f_a_proj.weight", "f_b_proj.weight"))

    stores = packed(partial(mlx_affine, group=64), is_gate)
    assert len(stores) == 38_770 + 136
    stores = {name.replace("model.visual.", "vision_tower."): stored for name, stored in stores.items()}
    result = judge(stores, quantization=_as_stored())
    (renamed,) = result.findings
    assert (renamed.code, renamed.name, renamed.detail["mapped"]) == (Code.RENAMED, "vision", 347)
    assert result.groups[Group.TRUNK].schemes["mlx-affine"] == 68
    assert result.is_complete


def test_a_packed_head_at_top_level_is_complete_with_its_sidecars_and_not_without() -> None:
    """Case A04: 4096 columns at 4 bits are 512 words, in 64 groups of 64."""
    stores = packed(mlx_affine, lambda name: name == "lm_head.weight")
    assert stores["lm_head.weight"] == ("U32", (154_880, 512))
    assert stores["lm_head.scales"] == ("BF16", (154_880, 64))
    assert judge(stores, quantization=_as_stored()).findings == ()
    (error,) = judge(without(stores, "lm_head.scales".__eq__), quantization=_as_stored()).findings
    assert (error.code, error.name) == (Code.SCALE, "lm_head.scales")


def test_the_mtp_layers_own_head_and_embedding_are_optional() -> None:
    """Case A08: no release ships them; a copy is no stranger."""
    shape = (154_880, 4_096)
    copies: Stores = {f"{LAYERS}45.{name}.weight": ("BF16", shape) for name in ("shared_head.head", "embed_tokens")}
    assert judge({**bf16(), **copies}).findings == ()


def test_block_fp8_is_the_same_under_the_spelling_without_inv() -> None:
    """Case A10: 4096 x 12288 has 32 x 96 blocks."""
    name = f"{LAYERS}0.mlp.down_proj.weight"
    stores = packed(fp8_blocks, name.__eq__)
    stores[f"{LAYERS}0.mlp.down_proj.weight_scale"] = ("F32", (32, 96))
    result = judge(stores, quantization=_as_stored())
    assert result.findings == ()
    assert schemes(result, Group.TRUNK)["fp8"] == 1


def test_an_unknown_way_of_packing_is_never_judged() -> None:
    from modelbones.errors import UnknownSchemeError

    stores = {**bf16(), f"{LAYERS}0.mlp.up_proj.trellis": ("I16", (256, 768, 48))}
    with pytest.raises(UnknownSchemeError, match='unknown quantisation scheme "exl3"'):
        judge(stores)
