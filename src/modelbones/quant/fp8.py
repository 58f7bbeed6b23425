"""Block FP8: E4M3 weights with one fp32 factor for each 128 x 128 block.

The factor is multiplied, whatever `_inv` in its name suggests. Source: zai-org/GLM-5.3-Flash
headers and config.json; transformers 5.23 integrations/finegrained_fp8.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.dtypes import DType
from modelbones.errors import UnknownSchemeError
from modelbones.quant.claim import Claim
from modelbones.quant.exclusions import component_match
from modelbones.quant.form import Form, Sidecar, blocks, same
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role

SCHEME = "fp8"
BLOCK = (128, 128)

FORMS = (
    Form(
        scheme=SCHEME,
        dtypes=(DType.F8_E4M3,),
        shape=same,
        sidecars=(Sidecar(leaf="weight_scale_inv", dtypes=(DType.F32,), shapes=(blocks(*BLOCK),)),),
    ),
)


def claims(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """What a `quantization_config` of method fp8 says; block sizes other than 128 x 128 are unknown."""
    block = quantization.get("weight_block_size")
    if not isinstance(block, list | tuple) or tuple(block) != BLOCK:
        raise UnknownSchemeError(place=place, scheme=f"fp8 with weight_block_size {block}", known=("fp8 [128, 128]",))
    entries = quantization.get("modules_to_not_convert") or ()
    listed = tuple(entry for entry in entries if isinstance(entry, str)) if isinstance(entries, list | tuple) else ()
    return Claim(scheme=SCHEME, place=place, is_excluded=component_match(listed))


def declare(excluded: list[str]) -> dict[str, Any]:
    """The `quantization_config` that leaves the modules `excluded` alone, as the release spells them."""
    listed = (name.replace("model.language_model.", "model.").replace("model.visual.", "visual.") for name in excluded)
    return {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "modules_to_not_convert": sorted(listed),
        "quant_method": "fp8",
        "weight_block_size": list(BLOCK),
    }


RECIPE = Recipe(
    scheme=SCHEME,
    form=FORMS[0],
    roles=frozenset({Role.EXPERTS, Role.SHARED_EXPERTS, Role.DENSE_MLP, Role.DSA}),
    skips=("kv_b_proj", "indexer."),
    declare=declare,
)
"""What zai-org/GLM-5.3-Flash packs: every MLP, and of sparse attention all but `kv_b_proj` and the indexer."""
