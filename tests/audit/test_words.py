"""What each code says, word for word: `name: found; expected what; what to do`."""

from __future__ import annotations

import pytest

from tests import release
from tests.audit.stores import judge, only_error, quantised, tiny_config
from tests.release import LAYERS, Stores

PLAIN = release.bf16(release.TINY)
PACKED = release.fp8(release.TINY)
CLAIM = quantised(name.removesuffix(".weight") for name in PLAIN if not release.is_fp8(name, release.TINY))
NORM = f"{LAYERS}1.input_layernorm.weight"
EXPERT = f"{LAYERS}4.mlp.experts.2.up_proj.weight"
SCALE = f"{EXPERT}_scale_inv"
KV_B = f"{LAYERS}3.self_attn.kv_b_proj.weight"


def without(stores: Stores, name: str) -> Stores:
    return {key: value for key, value in stores.items() if key != name}


MISSING = "fetch the file that should hold it, or convert again"
SHAPE = "write it again with the shape the config gives, or correct the config"
AGAIN = "convert it again from the original"
MODULE = "convert this module again from the original"

CASES = {
    "missing": (without(PLAIN, NORM), f"{NORM}: not stored; expected a tensor of shape [128]; {MISSING}"),
    "unexpected": (
        {**PLAIN, f"{NORM}.old": ("BF16", (128,))},
        f"{NORM}.old: belongs to nothing the config declares; expected only tensors the config declares; "
        "drop it, or correct the config",
    ),
    "shape": ({**PLAIN, NORM: ("BF16", (64,))}, f"{NORM}: shape [64]; expected [128]; {SHAPE}"),
    "shape of a packed weight": (
        {**PACKED, KV_B: ("BF16", (64, 256))},
        f"{KV_B}: shape [64, 256]; expected [256, 64]; {SHAPE}",
    ),
    "shape of a scale": ({**PACKED, SCALE: ("F32", (2, 1))}, f"{SCALE}: shape [2, 1]; expected [1, 1]; {SHAPE}"),
    "dtype": ({**PLAIN, NORM: ("I32", (128,))}, f"{NORM}: I32; expected BF16 or F16 or F32; {AGAIN}"),
    "dtype of a packed weight": (
        {**PACKED, EXPERT: ("F8_E5M2", (128, 128))},
        f"{EXPERT}: F8_E5M2; expected F8_E4M3; {AGAIN}",
    ),
    "dtype of a scale": ({**PACKED, SCALE: ("BF16", (1, 1))}, f"{SCALE}: BF16; expected F32; {AGAIN}"),
    "renamed": (
        {**without(PLAIN, NORM), "norm": ("BF16", (128,))},
        f"{NORM}: not stored; norm has its type and shape and belongs to nothing; expected this name; "
        "rename norm to it, if it is this tensor",
    ),
    "scale without its weight": (
        without(PACKED, EXPERT),
        f"{EXPERT}: {SCALE} without its weight; expected a weight for each scale; {MODULE}",
    ),
    "weight without its scale": (
        without(PACKED, SCALE),
        f"{SCALE}: {EXPERT} without it; expected every sidecar its scheme needs; {MODULE}",
    ),
    "scale of a plain weight": (
        {**PLAIN, SCALE: ("F32", (1, 1))},
        f"{SCALE}: a scale without a weight to scale; expected a quantised weight beside it; "
        "store its weight quantised, or drop it",
    ),
    "scale of nothing": (
        {**PACKED, "odd.weight_scale_inv": ("F32", (1, 1))},
        "odd.weight_scale_inv: a scale without a weight to scale; expected a quantised weight beside it; "
        "store its weight quantised, or drop it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_finding_says_what_was_found_what_was_expected_and_what_to_do(case: str) -> None:
    stores, message = CASES[case]
    claim = CLAIM if any(dtype == "F8_E4M3" for dtype, _ in stores.values()) else None
    error = only_error(judge(stores, tiny_config(), quantization=claim))
    assert error.message == message
    assert error.code.value == case.partition(" ")[0] or error.code.value == "scale"
    assert error.name == message.partition(": ")[0]
    assert error.message.endswith(f"; {error.fix}")
    assert error.why
