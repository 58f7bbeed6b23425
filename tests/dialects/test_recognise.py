"""Whose names a checkpoint has, group by group, told from names and shapes alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from modelbones.audit import Audit, Verdict
from modelbones.tensors import Group
from tests import release
from tests.audit.stores import judge, said, tiny_config
from tests.dialects.stacks import held, stored
from tests.release import Stores

TINY = release.bf16(release.TINY)
MTP = f"{release.LAYERS}5."
KDA, DSA = 4, 2
"""Layers of each kind: 0, 1, 2 and 4; 3 and the MTP layer."""


def renamed(stores: Stores, name: Callable[[str], str]) -> Stores:
    return {name(old): stored for old, stored in stores.items()}


def spelled(result: Audit, group: Group) -> tuple[tuple[str, ...], str, int]:
    spelling = result.spellings[group]
    return spelling.writers, spelling.prefix, spelling.mapped


def ensure_only_renamed(result: Audit, *groups: str) -> None:
    assert said(result) == [("warning", "renamed", group) for group in groups]
    assert result.is_complete


def prefixed(new: str) -> Stores:
    return renamed(TINY, lambda name: name.replace(release.TRUNK, new))


@pytest.mark.parametrize(
    ("prefix", "writer"),
    [
        ("model.", "text-only"),
        ("language_model.model.", "mlx"),
        ("foo.model.language_model.", "foreign prefix"),
        ("model.model.language_model.", "foreign prefix"),
        ("base_model.model.model.language_model.", "foreign prefix"),
        ("module.", "foreign prefix"),
    ],
)
def test_another_prefix_of_the_text_is_one_finding_a_group(prefix: str, writer: str) -> None:
    result = judge(prefixed(prefix), tiny_config())
    ensure_only_renamed(result, "trunk", "mtp")
    # 272 tensors, of them 39 of the tower, 49 of the MTP layer and the head.
    assert spelled(result, Group.TRUNK) == ((writer,), prefix, 272 - 39 - 49 - 1)
    assert spelled(result, Group.MTP) == ((writer,), prefix, 49)
    assert spelled(result, Group.VISION) == ((), "model.visual.", 0)
    detail = result.findings[0].detail
    assert (detail["prefix"], detail["published_prefix"]) == (prefix, release.TRUNK)
    assert f'under "{prefix}"' in result.findings[0].message


def test_a_prefix_before_every_name_takes_the_head_and_the_tower_along() -> None:
    result = judge(renamed(TINY, lambda name: f"foo.{name}"), tiny_config())
    ensure_only_renamed(result, "trunk", "mtp", "vision")
    assert {result.spellings[group].prefix for group in result.spellings} == {
        "foo.model.language_model.",
        "foo.model.visual.",
    }


def test_a_base_model_saved_alone_has_no_prefix_and_no_head() -> None:
    stores = renamed(TINY, lambda name: name.removeprefix(release.TRUNK))
    del stores["lm_head.weight"]
    result = judge(stores, tiny_config())
    ensure_only_renamed(result, "trunk", "mtp")
    assert spelled(result, Group.TRUNK) == (("text-only",), "", 183)


def test_a_head_that_is_missing_under_the_published_prefix_is_missing() -> None:
    stores = dict(TINY)
    del stores["lm_head.weight"]
    assert said(judge(stores, tiny_config())) == [("error", "missing", "lm_head.weight")]


def transformers_spelled(name: str, stored: tuple[str, tuple[int, ...]]) -> tuple[str, tuple[str, tuple[int, ...]]]:
    name = re.sub(r"\.hc_(attn|ffn)_", r".\1_hc.", name)
    return re.sub(r"self_attn\.(f_a_proj|f_b_proj|dt_bias|A_log)", r"self_attn.forget_gate.\1", name), stored


def stacked(stores: Stores, joined: dict[str, tuple[str, ...]], *, gate_up: bool) -> Stores:
    """Leaves under `self_attn.` joined by rows, experts stacked."""
    result: Stores = {}
    for name, (dtype, shape) in stores.items():
        expert = re.fullmatch(r"(.*mlp\.)experts\.(\d+)\.(gate|up|down)_proj\.weight", name)
        target = next((new for new, old in joined.items() for leaf in old if name.endswith(f".self_attn.{leaf}")), None)
        if expert and gate_up and expert[3] != "down":
            result[f"{expert[1]}experts.gate_up_proj"] = (dtype, (8, 2 * shape[0], shape[1]))
        elif expert and gate_up:
            result[f"{expert[1]}experts.down_proj"] = (dtype, (8, *shape))
        elif expert:
            result[f"{expert[1]}switch_mlp.{expert[3]}_proj.weight"] = (dtype, (8, *shape))
        elif target:
            full = f"{name.partition('self_attn.')[0]}self_attn.{target}"
            rows = result.get(full, (dtype, (0,)))[1][0] + shape[0]
            result[full] = (dtype, (rows, *shape[1:]))
        else:
            result[name] = (dtype, shape)
    return result


CONVS = tuple(f"{x}_conv1d.weight" for x in "qkv")


def in_transformers(stores: Stores = TINY) -> Stores:
    spelled = dict(transformers_spelled(name, stored) for name, stored in stores.items())
    return stacked(spelled, {"conv1d.weight": CONVS}, gate_up=True)


def test_transformers_module_names_are_told_by_kind() -> None:
    result = judge(in_transformers(), tiny_config())
    ensure_only_renamed(result, "trunk", "mtp")
    assert result.spellings[Group.TRUNK].writers == ("transformers",)
    assert dict(result.spellings[Group.TRUNK].kinds) == {
        "hyper_connection": 5 * 6,
        "forget_gate": KDA * 4,
        "fused_conv": KDA,
        "packed_experts": 2 * 2,
    }
    assert dict(result.spellings[Group.MTP].kinds) == {"packed_experts": 2}
    assert result.parameters == judge(TINY, tiny_config()).parameters


def axis_moved(stores: Stores) -> Stores:
    return {
        name: (dtype, (shape[0], 4, 1) if "conv" in name and ".self_attn." in name else shape)
        for name, (dtype, shape) in stores.items()
    }


def absorbed(stores: Stores) -> Stores:
    """4 heads, a latent of 64, 32 key and 32 value rows a head."""
    result: Stores = {}
    for name, (dtype, shape) in stores.items():
        if name.endswith("kv_b_proj.weight"):
            stem = name.removesuffix("kv_b_proj.weight")
            assert shape == (4 * (32 + 32), 64)
            result |= {f"{stem}embed_q.weight": (dtype, (4, 64, 32)), f"{stem}unembed_out.weight": (dtype, (4, 32, 64))}
        else:
            result[name] = (dtype, shape)
    return result


def mlx_prefixed(stores: Stores) -> Stores:
    def name(old: str) -> str:
        if old == "lm_head.weight":
            return "language_model.lm_head.weight"
        return old.replace(release.TRUNK, "language_model.model.").replace("model.visual.", "vision_tower.")

    return renamed(stores, name)


def in_mlx() -> Stores:
    return mlx_prefixed(axis_moved(absorbed(stacked(TINY, {}, gate_up=False))))


def test_mlx_names_are_told_by_kind_and_the_head_and_the_tower_with_them() -> None:
    result = judge(in_mlx(), tiny_config())
    ensure_only_renamed(result, "trunk", "mtp", "vision")
    assert all(spelling.writers == ("mlx",) for spelling in result.spellings.values())
    kinds = dict(result.spellings[Group.TRUNK].kinds)
    assert (kinds["switch_mlp"], kinds["absorbed_kv_b"], kinds["conv_axis"]) == (2 * 3, 2, KDA * 3)
    assert spelled(result, Group.VISION) == (("mlx",), "vision_tower.", 39)
    assert result.parameters == judge(TINY, tiny_config()).parameters


FUSED = {
    "qkv_proj.weight": tuple(f"{x}_proj.weight" for x in "qkv"),
    "fbg_a_proj.weight": ("f_a_proj.weight", "b_proj.weight", "g_a_proj.weight"),
    "qkv_a_proj.weight": ("q_a_proj.weight", "kv_a_proj_with_mqa.weight"),
    "qkv_conv.conv.weight": CONVS,
}


def test_what_mlx_fuses_when_it_loads_is_told_too() -> None:
    stores = stacked(TINY, FUSED, gate_up=False)
    for name in [name for name in stores if name.endswith("gate_proj.weight") and "visual" not in name]:
        if "switch_mlp" in name:
            continue
        dtype, (rows, columns) = stores.pop(name)
        del stores[name.replace("gate_proj", "up_proj")]
        stores[name.replace("gate_proj", "gate_up_proj")] = (dtype, (2 * rows, columns))
    stores = mlx_prefixed(axis_moved(absorbed(stores)))
    stores = {re.sub(r"\.hc_(attn|ffn)_", r".\1_hc.", name): stored for name, stored in stores.items()}
    result = judge(stores, tiny_config())
    ensure_only_renamed(result, "trunk", "mtp", "vision")
    kinds = dict(result.spellings[Group.TRUNK].kinds)
    assert {kind: kinds[kind] for kind in ("fused_qkv", "fused_gates", "fused_qkv_a", "fused_conv")} == {
        "fused_qkv": KDA,
        "fused_gates": KDA,
        "fused_qkv_a": 1,
        "fused_conv": KDA,
    }
    assert kinds["fused_gate_up"] == 3 + 2
    assert kinds["conv_axis"] == KDA
    assert result.parameters == judge(TINY, tiny_config()).parameters


def test_stacked_experts_may_be_fused_too_gate_before_up_in_each() -> None:
    """Bug: stacks were looked for leaf by leaf only, so that a fused one was a stranger and its experts missing."""
    stores: Stores = {}
    for name, (dtype, shape) in stacked(TINY, {}, gate_up=False).items():
        if "switch_mlp.up_proj" in name:
            continue
        is_gate = "switch_mlp.gate_proj" in name
        full = name.replace("gate_proj", "gate_up_proj") if is_gate else name
        stores[full] = (dtype, (shape[0], 2 * shape[1], shape[2]) if is_gate else shape)
    result = judge(stores, tiny_config())
    ensure_only_renamed(result, "trunk", "mtp")


def test_each_group_has_its_own_writer() -> None:
    trunk = in_transformers({name: stored for name, stored in TINY.items() if not name.startswith(MTP)})
    mtp = {name: stored for name, stored in TINY.items() if name.startswith(MTP)}
    stores = {**renamed(trunk, lambda name: name.replace("model.visual.", "vision_tower.")), **mtp}
    result = judge(stores, tiny_config())
    ensure_only_renamed(result, "trunk", "vision")
    assert [spelling.writers for spelling in result.spellings.values()] == [("transformers",), (), ("mlx",)]


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4, 1)])
def test_the_decay_may_be_a_vector_or_ready_to_broadcast(shape: tuple[int, ...]) -> None:
    stores = {name: (d, shape if name.endswith("A_log") else s) for name, (d, s) in TINY.items()}
    result = judge(stores, tiny_config())
    assert result.is_complete
    assert said(result) == ([] if shape == (4,) else [("warning", "renamed", "trunk")])


def test_experts_published_in_a_stack_and_stored_one_by_one_are_split() -> None:
    name = "qwen3.5-35b-a3b"
    result = held(name, stored(name, "split-experts"))
    assert [(code, group) for _, code, group in said(result)] == [("renamed", "trunk")]
    assert result.spellings[Group.TRUNK].writers == ("split-experts",)
    assert result.parameters == held(name, stored(name)).parameters
    assert result.groups[Group.TRUNK].verdict is Verdict.COMPLETE


def test_one_expert_missing_of_a_split_stack_is_one_missing_tensor() -> None:
    name = "qwen3.5-35b-a3b"
    stores = stored(name, "split-experts")
    gone = next(each for each in stores if ".experts.3.up_proj" in each)
    del stores[gone]
    assert [entry for entry in said(held(name, stores)) if entry[0] == "error"] == [("error", "missing", gone)]


def test_a_group_that_is_absent_has_no_other_writer() -> None:
    for lost in ("model.visual.", MTP):
        stores = {name: each for name, each in in_transformers().items() if not name.startswith(lost)}
        result = judge(stores, tiny_config())
        assert sorted(code for _, code, _ in said(result)) in (
            ["group_absent", "renamed"],
            ["group_absent", "renamed", "renamed"],
        )
