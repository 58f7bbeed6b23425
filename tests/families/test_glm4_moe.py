from __future__ import annotations

from typing import Any

import pytest

from modelbones.families.registry import preset, read_config
from modelbones.reserve import device_parts, uncounted
from modelbones.skeleton import Mixer, Mlp
from modelbones.tensors import Group
from tests.families.reading_back import names, parameters, shapes, skeleton
from tests.families.refusing import faults
from tests.published import GONE, edited

CONFIG = preset("glm-4.5-air")


def test_a_token_costs_188_416_bytes_of_46_layers() -> None:
    assert skeleton(CONFIG).budget().per_token() == 46 * 2 * 8 * 128 * 2 == 188_416
    assert parameters(CONFIG) == 106_852_251_264
    assert len(names(CONFIG)) == 17_925


def test_the_first_layer_is_dense_and_the_mtp_layer_is_layer_46() -> None:
    bones = skeleton(CONFIG)
    assert [layer.index for layer in bones.layers if layer.mlp is Mlp.DENSE] == [0]
    assert bones.mtp is not None
    assert (bones.mtp.index, bones.mtp.mixer, bones.mtp.mlp) == (46, Mixer.ATTENTION, Mlp.ROUTED_MOE)
    assert {
        f"model.layers.46.{leaf}.weight"
        for leaf in ("eh_proj", "enorm", "hnorm", "shared_head.norm", "mlp.shared_experts.up_proj")
    } <= names(CONFIG, Group.MTP)


def test_an_mtp_layer_may_leave_its_copies_of_embedding_and_head_out() -> None:
    """Field case A15, ggml-org/llama.cpp issue 16361: GLM-4.5 shipped the two tensors, 4.6 does not."""
    optional = {p.name for p in skeleton(CONFIG).patterns if not p.required}
    assert optional == {"model.layers.{layer}.embed_tokens.weight", "model.layers.{layer}.shared_head.head.weight"}


def test_the_mtp_layer_s_pages_are_named_apart_and_held_when_it_drafts() -> None:
    bones = skeleton(CONFIG)
    assert device_parts(bones, 1_000, num_spec=1, spec_on=True) == {"kv": 188_416_000, "mtp_kv": 4_096_000}
    assert device_parts(bones, 1_000, num_spec=0, spec_on=False) == {"kv": 188_416_000}
    assert [(item.name, item.nbytes) for item in uncounted(bones, num_spec=0, spec_on=False)] == [("mtp_kv", 4_096)]


def test_biases_stand_on_queries_keys_and_values_and_norms_where_the_config_says_so() -> None:
    attention = set(shapes(CONFIG, "model.layers.{layer}.self_attn."))
    assert {name for name in attention if name.endswith(".bias")} == {f"{x}_proj.bias" for x in "qkv"}
    # zai-org/GLM-4.5 norms queries and keys, Air does not.
    normed = set(shapes({**CONFIG, "use_qk_norm": True}, "model.layers.{layer}.self_attn."))
    assert normed - attention == {"q_norm.weight", "k_norm.weight"}


def test_absent_keys_with_one_meaning_are_listed() -> None:
    edits = {"use_qk_norm": GONE, "attention_bias": GONE, "num_nextn_predict_layers": GONE}
    assert {item.path for item in read_config(edited(CONFIG, edits)).declared.assumed} == set(edits)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"head_dim": GONE}, "head_dim: found missing; expected a positive integer"),
        (
            {"first_k_dense_replace": GONE},
            "mlp_layer_types: found missing; expected a list of 46 words, or first_k_dense_replace",
        ),
        ({"num_nextn_predict_layers": 2}, "num_nextn_predict_layers: found 2; expected 0 or 1 MTP layers"),
    ],
)
def test_what_is_wrong_is_refused(edits: dict[str, Any], expected: str) -> None:
    assert faults(edited(CONFIG, edits)) == [expected]
