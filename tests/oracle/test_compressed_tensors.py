"""What the compressed-tensors package stores of a weight, against our forms of it."""

from __future__ import annotations

from typing import Any

import pytest

from modelbones.quant.form import Form
from modelbones.quant.registry import FORMS, read_claim
from tests.audit.stores import judge, said, tiny_config
from tests.release import LAYERS, TINY, Stores, bf16

pytestmark = pytest.mark.oracle

LOGICAL = (256, 128)
TYPES = {
    "torch.uint8": "U8",
    "torch.int32": "I32",
    "torch.int64": "I64",
    "torch.float32": "F32",
    "torch.bfloat16": "BF16",
    "torch.float8_e4m3fn": "F8_E4M3",
}


def compressed(layout: str, shape: tuple[int, int], **weights: Any) -> Stores:
    """A weight of ones as the package compresses it: leaf -> (dtype, shape)."""
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    args = QuantizationArgs(**weights)
    rows, columns = shape
    group = args.group_size or columns
    scales: tuple[int, ...] = (rows, max(1, columns // group)) if args.strategy != "tensor" else (1,)
    if args.strategy == "block":
        scales = (-(-rows // 128), -(-columns // 128))
    state = {
        "weight": torch.ones(shape, dtype=torch.bfloat16),
        "weight_scale": torch.ones(scales, dtype=torch.bfloat16),
    }
    if layout == "nvfp4-pack-quantized":
        state["weight_global_scale"] = torch.ones(1, dtype=torch.float32)
    if not args.symmetric:
        state["weight_zero_point"] = torch.zeros(scales, dtype=torch.int8)
    kind = BaseCompressor.get_value_from_registry(layout)
    packed = kind.compress(state, QuantizationScheme(targets=["Linear"], weights=args))
    return {leaf: (TYPES[str(tensor.dtype)], tuple(tensor.shape)) for leaf, tensor in packed.items()}


NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}
FP8 = {"num_bits": 8, "type": "float"}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "NVFP4": ("nvfp4-pack", "nvfp4-pack-quantized", NVFP4),
    "4-bit integers": ("int4-pack", "pack-quantized", INT4),
    "4-bit integers with zero points": ("int4-pack", "pack-quantized", {**INT4, "symmetric": False}),
    "4-bit integers a channel": ("int4-pack", "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "channel"}),
    "8-bit integers": ("int8-pack", "pack-quantized", {**INT4, "num_bits": 8, "group_size": 128}),
    "FP8 blocks": ("fp8", "float-quantized", {**FP8, "strategy": "block", "block_structure": [128, 128]}),
    "FP8 a channel": ("fp8-channel", "float-quantized", {**FP8, "strategy": "channel"}),
    "FP8 a tensor": ("fp8-tensor", "float-quantized", {**FP8, "strategy": "tensor"}),
}


def fits(form: Form, leaves: Stores) -> bool:
    """Whether these tensors, and no others, are a weight in this form."""
    own = {form.leaf, *(sidecar.leaf for sidecar in form.sidecars)}
    required = {form.leaf, *(sidecar.leaf for sidecar in form.sidecars if sidecar.is_required)}
    if not required <= leaves.keys() <= own or form.shape(LOGICAL) != leaves[form.leaf][1]:
        return False
    types = {form.leaf: form.dtypes, **{sidecar.leaf: sidecar.dtypes for sidecar in form.sidecars}}
    shapes = {sidecar.leaf: sidecar for sidecar in form.sidecars}
    return all(
        dtype in [each.value for each in types[leaf]] and (leaf == form.leaf or shapes[leaf].fits(LOGICAL, shape))
        for leaf, (dtype, shape) in leaves.items()
    )


@pytest.mark.parametrize("case", CASES)
def test_one_of_our_forms_is_what_the_package_stores(case: str) -> None:
    scheme, layout, weights = CASES[case]
    leaves = compressed(layout, LOGICAL, **weights)
    assert {form.scheme for form in FORMS if fits(form, leaves)} == {scheme}, leaves


@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_the_package_packed_is_judged_by_its_own_config(case: str) -> None:
    scheme, layout, weights = CASES[case]
    stores: Stores = {}
    plain = bf16(TINY)
    for name, stored in plain.items():
        if name.startswith(LAYERS) and ".mlp.experts." in name:
            packed = compressed(layout, (stored[1][0], stored[1][1]), **weights)
            stores |= {name.removesuffix("weight") + leaf: each for leaf, each in packed.items()}
        else:
            stores[name] = stored
    group = {"targets": [r"re:.*mlp\.experts\.\d+\..*"], "weights": weights, "format": layout}
    words = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"]}
    claim = read_claim(words, place="config.json")
    assert claim is not None
    assert claim.schemes == {scheme}
    result = judge(stores, tiny_config(), quantization=words)
    assert said(result) == []
    assert result.scheme == scheme
    assert result.parameters == judge(plain, tiny_config()).parameters


def test_the_package_divides_by_its_global_scale_where_modelopt_multiplies() -> None:
    """The same numbers under a global scale of 4 are a quarter as large."""
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**NVFP4))
    kind = BaseCompressor.get_value_from_registry("nvfp4-pack-quantized")
    values = {}
    for scale in (1.0, 4.0):
        state = {
            "weight_packed": torch.full((1, 8), 0x22, dtype=torch.uint8),
            "weight_scale": torch.ones((1, 1), dtype=torch.float8_e4m3fn),
            "weight_global_scale": torch.tensor([scale]),
        }
        values[scale] = float(kind.decompress(state, scheme)["weight"].float().mean())
    assert values[1.0] == 1.0
    assert values[4.0] == 0.25
