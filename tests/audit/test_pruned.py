"""Builds with fewer experts: the router's rows decide, and must agree with what is stored."""

from __future__ import annotations

import re

from modelbones.audit import Verdict
from modelbones.findings import Code, Severity
from modelbones.tensors import Group
from tests.audit.stores import judge, only_error, tiny_config
from tests.release import LAYERS, TINY, Stores, bf16

EXPERT = re.compile(re.escape(LAYERS) + r"(\d+)\.mlp\.experts\.(\d+)\.")
ROUTER = re.compile(re.escape(LAYERS) + r"(\d+)\.mlp\.gate\.")


def pruned(kept: dict[int, int]) -> Stores:
    """The tiny release with only the first experts of some layers, their routers cut to match."""
    stores: Stores = {}
    for name, (dtype, shape) in bf16(TINY).items():
        expert, router = EXPERT.match(name), ROUTER.match(name)
        if expert and int(expert[2]) >= kept.get(int(expert[1]), TINY.experts):
            continue
        rows = kept.get(int(router[1])) if router else None
        stores[name] = (dtype, shape if rows is None else (rows, *shape[1:]))
    return stores


def test_layers_that_keep_different_counts_are_complete_with_one_warning_a_group() -> None:
    """Layers 3 and 4 of the trunk keep 6 and 5 of 8 experts; the MTP layer, 5, keeps all."""
    result = judge(pruned({3: 6, 4: 5}), tiny_config())
    (warning,) = result.findings
    assert (warning.code, warning.severity, warning.name) == (Code.SHAPE, Severity.WARNING, "experts")
    assert warning.message == (
        "experts: 2 layers keep 5 to 6 routed experts, and their routers agree; expected 8, as the config says; "
        "state the count in the config, or use a loader that reads it layer by layer"
    )
    assert warning.detail == {"layers": {"3": 6, "4": 5}, "declared": 8}
    trunk = result.groups[Group.TRUNK]
    # 184 tensors, less 2 + 3 experts of 3 matrices.
    assert (trunk.verdict, trunk.bound, trunk.required) == (Verdict.COMPLETE, 184 - 15, 184 - 15)
    assert result.is_complete


def test_an_expert_missing_from_a_pruned_layer_is_missing() -> None:
    stores = pruned({3: 6})
    name = f"{LAYERS}3.mlp.experts.2.up_proj.weight"
    del stores[name]
    error, warning = judge(stores, tiny_config()).findings
    assert warning.name == "experts"
    assert (error.code, error.name) == (Code.MISSING, name)


def test_a_router_with_fewer_rows_than_its_experts_is_a_router_of_a_wrong_shape() -> None:
    stores = bf16(TINY)
    name = f"{LAYERS}3.mlp.gate.weight"
    stores[name] = ("BF16", (7, TINY.hidden))
    error = only_error(judge(stores, tiny_config()))
    assert (error.code, error.name) == (Code.SHAPE, name)


def test_a_bias_that_does_not_follow_its_router_is_of_a_wrong_shape() -> None:
    stores = pruned({3: 6})
    name = f"{LAYERS}3.mlp.gate.e_score_correction_bias"
    stores[name] = ("F32", (8,))
    error, warning = judge(stores, tiny_config()).findings
    assert warning.name == "experts"
    assert (error.code, error.name) == (Code.SHAPE, name)


def test_the_mtp_layer_may_be_pruned_by_itself() -> None:
    result = judge(pruned({5: 4}), tiny_config())
    (warning,) = result.findings
    assert warning.message.startswith("experts: 1 layer keeps 4 routed experts, and their routers agree; ")
    assert result.groups[Group.MTP].verdict is Verdict.COMPLETE
