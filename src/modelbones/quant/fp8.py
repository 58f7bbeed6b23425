"""FP8 weights with factors: by 128 x 128 blocks, by output channel, or one for the tensor.

The factor is multiplied, whatever `_inv` in its name suggests. Source: zai-org/GLM-5.3-Flash
headers and config.json; transformers 5.23 integrations/finegrained_fp8.py;
vllm-project/vllm vllm/model_executor/layers/quantization/fp8.py; vllm pull 54556 for the
spelling without `_inv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelbones.dtypes import DType
from modelbones.errors import UnknownSchemeError
from modelbones.quant.claim import Claim, everything_but
from modelbones.quant.exclusions import component_match, listed
from modelbones.quant.form import Form, Sidecar, blocks, one, per_row, same, scalar
from modelbones.quant.recipe import Recipe
from modelbones.tensors import Role

SCHEME = "fp8"
PER_CHANNEL = "fp8-channel"
PER_TENSOR = "fp8-tensor"
BLOCK = (128, 128)
_FACTORS = (DType.F32, DType.BF16, DType.F16)
_INPUT = Sidecar(leaf="input_scale", dtypes=(DType.F32, DType.BF16), shapes=(scalar, one), is_required=False)


def _form(scheme: str, *sidecars: Sidecar) -> Form:
    return Form(scheme=scheme, dtypes=(DType.F8_E4M3,), shape=same, sidecars=sidecars)


FORMS = (
    _form(SCHEME, Sidecar(leaf="weight_scale_inv", dtypes=(DType.F32,), shapes=(blocks(*BLOCK),))),
    _form(SCHEME, Sidecar(leaf="weight_scale", dtypes=_FACTORS, shapes=(blocks(*BLOCK),)), _INPUT),
    _form(PER_CHANNEL, Sidecar(leaf="weight_scale", dtypes=_FACTORS, shapes=(per_row,)), _INPUT),
    _form(PER_TENSOR, Sidecar(leaf="weight_scale", dtypes=_FACTORS, shapes=(scalar, one)), _INPUT),
    _form(SCHEME, Sidecar(leaf="scale_inv", dtypes=(DType.F32,), shapes=(blocks(*BLOCK),))),
)
"""The last is a stack of experts as transformers holds it: `gate_up_proj` and `gate_up_proj_scale_inv`."""
SCHEMES = frozenset({SCHEME, PER_CHANNEL, PER_TENSOR})


def claims(quantization: Mapping[str, Any], *, place: str) -> Claim:
    """What a `quantization_config` of method fp8 says.

    Without a block size one factor scales a tensor or a row; blocks other than 128 x 128 are
    unknown. Source: vllm-project/vllm vllm/model_executor/layers/quantization/fp8.py::Fp8Config.
    """
    block = quantization.get("weight_block_size")
    schemes = frozenset({PER_TENSOR, PER_CHANNEL}) if block is None else frozenset({SCHEME})
    if block is not None and (not isinstance(block, list | tuple) or tuple(block) != BLOCK):
        raise UnknownSchemeError(place=place, scheme=f"fp8 with weight_block_size {block}", known=("fp8 [128, 128]",))
    entries = quantization.get("modules_to_not_convert", quantization.get("ignored_layers"))
    excluded = ("lm_head",) if entries is None else listed(entries)
    return everything_but(component_match(excluded), schemes=schemes, place=place, entries=excluded)


def declare(excluded: list[str]) -> dict[str, Any]:
    """The `quantization_config` that leaves the modules `excluded` alone, as the release spells them."""
    spelled = (name.replace("model.language_model.", "model.").replace("model.visual.", "visual.") for name in excluded)
    return {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "modules_to_not_convert": sorted(spelled),
        "quant_method": "fp8",
        "weight_block_size": list(BLOCK),
    }


RECIPE = Recipe(
    scheme=SCHEME,
    form=FORMS[0],
    roles=frozenset({Role.EXPERTS, Role.SHARED_EXPERTS, Role.DENSE_MLP, Role.DSA}),
    skips=("kv_b_proj", "indexer."),
    declare=declare,
    stack_form=FORMS[-1],
)
"""What zai-org/GLM-5.3-Flash packs: every MLP, and of sparse attention all but `kv_b_proj` and the indexer."""
