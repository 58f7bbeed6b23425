"""Whole groups: absent, undeclared, optional; what a person asks to be judged."""

from __future__ import annotations

from typing import Any

import pytest

from modelbones.audit import Options
from modelbones.audit.verdicts import Verdict
from modelbones.findings import Severity
from modelbones.tensors import Group
from tests import release
from tests.audit.stores import judge, only_error, quantised, said, tiny_config
from tests.published import GONE, edited
from tests.release import Stores

TINY = release.bf16(release.TINY)
MTP = f"{release.LAYERS}{release.TINY.layers}."
VISION = "model.visual."
MTP_KEY = "text_config.num_nextn_predict_layers"


def without(prefix: str, stores: Stores = TINY) -> Stores:
    return {name: stored for name, stored in stores.items() if not name.startswith(prefix)}


def declared(edits: dict[str, Any]) -> dict[str, Any]:
    return edited(tiny_config(), edits)


@pytest.mark.parametrize(("group", "prefix", "count"), [(Group.MTP, MTP, 49), (Group.VISION, VISION, 39)])
def test_a_group_that_is_wholly_absent_is_one_finding(group: Group, prefix: str, count: int) -> None:
    result = judge(without(prefix), tiny_config())
    error = only_error(result)
    assert (error.code.value, error.name) == ("group_absent", group.value)
    assert error.detail == {"required": count}
    assert error.message.startswith(
        f"{group.value}: none of its {count} tensors is stored; expected all of them: the config declares this group; "
    )
    assert result.groups[group].verdict is Verdict.DECLARED_ABSENT
    assert not result.is_complete


def test_the_mtp_layer_of_the_release_absent_is_one_finding_and_not_889() -> None:
    result = judge(without(f"{release.LAYERS}45.", release.bf16()))
    error = only_error(result)
    assert error.message == (
        "mtp: none of its 889 tensors is stored; expected all of them: the config declares this group; "
        "set num_nextn_predict_layers to 0, or graft the layer from the original; --allow-absent mtp accepts it"
    )
    assert error.why == "an engine that is told to draft with it starts from uninitialised memory or fails"


def test_the_mtp_layer_of_the_fp8_release_absent_is_one_finding() -> None:
    stores = without(f"{release.LAYERS}45.", release.fp8())
    assert len(stores) == 74_348
    error = only_error(judge(stores, quantization=quantised(release.skip_list())))
    assert (error.code.value, error.name) == ("group_absent", "mtp")


@pytest.mark.parametrize(("group", "prefix"), [(Group.MTP, MTP), (Group.VISION, VISION)])
def test_an_absent_group_that_is_allowed_is_a_note(group: Group, prefix: str) -> None:
    result = judge(without(prefix), tiny_config(), options=Options(allow_absent=frozenset({group})))
    assert said(result) == [("note", "group_absent", group.value)]
    assert result.is_complete


def test_an_allowed_group_that_is_there_in_part_is_judged_all_the_same() -> None:
    stores = without(f"{MTP}enorm")
    result = judge(stores, tiny_config(), options=Options(allow_absent=frozenset({Group.MTP})))
    error = only_error(result)
    assert (error.code.value, error.name) == ("missing", f"{MTP}enorm.weight")
    assert not result.is_complete
    assert result.groups[Group.MTP].verdict is Verdict.PARTIAL


def test_only_the_groups_that_are_asked_for_are_judged() -> None:
    stores = without(VISION, without(f"{MTP}enorm"))
    both = judge(stores, tiny_config())
    assert said(both) == [("error", "missing", f"{MTP}enorm.weight"), ("error", "group_absent", "vision")]
    for group, findings in (
        (Group.TRUNK, []),
        (Group.MTP, [("error", "missing", f"{MTP}enorm.weight")]),
        (Group.VISION, [("error", "group_absent", "vision")]),
    ):
        result = judge(stores, tiny_config(), options=Options(only=frozenset({group})))
        assert said(result) == findings
        assert result.is_complete == (not findings)


def test_a_group_that_is_neither_declared_nor_stored_is_absent_and_nothing_is_found() -> None:
    stores = without(VISION, without(MTP))
    result = judge(stores, declared({MTP_KEY: 0, "vision_config": GONE}))
    assert result.findings == ()
    assert result.is_complete
    assert {group: judged.verdict for group, judged in result.groups.items()} == {
        Group.TRUNK: Verdict.COMPLETE,
        Group.MTP: Verdict.ABSENT,
        Group.VISION: Verdict.ABSENT,
    }


def test_a_tower_that_a_text_config_does_not_declare_is_one_warning() -> None:
    result = judge(TINY, declared({"vision_config": GONE}))
    assert said(result) == [("warning", "unexpected", "vision")]
    assert result.is_complete
    (warning,) = result.findings
    assert warning.message == (
        "vision: 39 tensors of a group the config does not declare, such as model.visual.blocks.0.attn.k_norm.weight; "
        "expected none: a glm5_next config without this group; "
        "declare the group in the config, or leave its tensors out"
    )


def test_an_mtp_layer_that_the_config_says_is_not_there_is_one_warning() -> None:
    result = judge(TINY, declared({MTP_KEY: 0}))
    assert said(result) == [("warning", "unexpected", "mtp")]
    assert result.is_complete
    assert result.findings[0].detail == {"count": 49}


def test_few_tensors_of_an_undeclared_group_are_named_one_by_one() -> None:
    stores = {**without(VISION), f"{VISION}blocks.0.norm1.weight": ("BF16", (64,))}
    result = judge(stores, declared({"vision_config": GONE}))
    assert said(result) == [("error", "unexpected", f"{VISION}blocks.0.norm1.weight")]


@pytest.mark.parametrize("copy", ["embed_tokens", "shared_head.head"])
def test_the_mtp_layers_own_copies_are_optional(copy: str) -> None:
    name = f"{MTP}{copy}.weight"
    assert judge({**TINY, name: ("BF16", (512, 128))}, tiny_config()).findings == ()
    error = only_error(judge({**TINY, name: ("BF16", (512, 64))}, tiny_config()))
    assert (error.code.value, error.name) == ("shape", name)


def test_the_mtp_layer_is_known_by_its_index_and_not_by_a_part_of_its_name() -> None:
    # Layer 50 of a five-layer model is past the trunk, "layers.5" is no part of it, and 4 is trunk.
    for name, only in ((f"{release.LAYERS}50.x", Group.MTP), (f"{release.LAYERS}4.x", Group.TRUNK)):
        stores = {**TINY, name: ("BF16", (1,))}
        for group in (Group.TRUNK, Group.MTP):
            result = judge(stores, tiny_config(), options=Options(only=frozenset({group})))
            assert said(result) == ([("error", "unexpected", name)] if group is only else [])


def test_many_tensors_of_one_kind_are_one_finding_with_their_number() -> None:
    gone = [name for name in release.bf16() if ".20.mlp.experts." in name and name.endswith("up_proj.weight")]
    stores = {name: stored for name, stored in release.bf16().items() if name not in gone}
    error = only_error(judge(stores))
    assert error.code.value == "missing"
    assert error.detail["count"] == len(gone) == 288
    assert error.detail["names"] == gone
    assert error.message == (
        "model.language_model.layers.{layer}.mlp.experts.{expert}.up_proj.weight: 288 tensors, such as "
        "model.language_model.layers.20.mlp.experts.0.up_proj.weight: not stored; expected a tensor of shape "
        "[2048, 4096]; fetch the file that should hold it, or convert again"
    )


def test_nothing_stored_of_the_model_is_absence_of_each_group() -> None:
    result = judge({"x": ("U8", (1,))}, tiny_config())
    assert [entry for entry in said(result) if entry[1] == "group_absent"] == [
        ("error", "group_absent", "trunk"),
        ("error", "group_absent", "mtp"),
        ("error", "group_absent", "vision"),
    ]
    assert said(result)[1] == ("error", "unexpected", "x")
    assert result.count(Severity.ERROR) == 4
    assert result.parameters == 0
