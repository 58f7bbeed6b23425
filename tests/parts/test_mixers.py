"""Attention, Gated DeltaNet and Mamba-2 as parts: what ranks hold of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.buffers import Grows, Home, Rewind
from modelbones.parts.attention import PLAIN, AttentionForm, AttentionSizes, attention
from modelbones.parts.gdn import GdnSizes, gdn
from modelbones.parts.mamba2 import Mamba2Sizes, mamba2
from modelbones.parts.part import Part
from modelbones.ranks import Axis, Ranks, widest_shape

ATTENTION = AttentionSizes(hidden_size=2880, num_attention_heads=64, num_key_value_heads=8, head_dim=64)
GDN = GdnSizes(
    hidden_size=2048,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_conv_kernel_dim=4,
)
MAMBA2 = Mamba2Sizes(
    hidden_size=2688, mamba_num_heads=64, mamba_head_dim=64, n_groups=8, ssm_state_size=128, conv_kernel=4
)
PARTS = {
    "attention": attention(ATTENTION),
    "all of attention": attention(
        ATTENTION, AttentionForm(qkv_bias=True, o_bias=True, head_norms=True, gated=True, sinks=True)
    ),
    "window": attention(ATTENTION, window_tokens=128),
    "fused gdn": gdn(GDN, fused=True),
    "split gdn": gdn(GDN, fused=False),
    "mamba2": mamba2(MAMBA2),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@given(ranks=st.integers(1, 200))
def test_the_widest_rank_holds_at_least_its_share_and_at_most_the_whole(part: Part, ranks: int) -> None:
    shared = Ranks.of({Axis.HEADS: ranks})
    for buffer in part.buffers:
        whole = buffer.row_bytes()
        assert whole <= ranks * buffer.row_bytes(ranks=shared) <= ranks * whole
    for tensor in part.tensors:
        for whole_dim, dim in zip(tensor.shape, widest_shape(tensor.shape, tensor.split, shared), strict=True):
            assert whole_dim <= ranks * dim <= ranks * whole_dim


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_two_ranks_hold_exactly_half_of_every_buffer(part: Part) -> None:
    for buffer in part.buffers:
        assert 2 * buffer.row_bytes(ranks=Ranks.of({Axis.HEADS: 2})) == buffer.row_bytes()


def test_a_window_has_the_same_tensors_and_another_state() -> None:
    full, window = PARTS["attention"], PARTS["window"]
    assert full.tensors == window.tensors
    assert [buffer.per.grows for buffer in window.buffers] == [Grows.WINDOW] * 2
    assert [buffer.nbytes(tokens=tokens) for buffer in window.buffers for tokens in (127, 128, 129)] == [
        rows * 8 * 64 * 2 for _ in "kv" for rows in (127, 128, 128)
    ]


def test_both_layouts_of_gdn_keep_the_same_state() -> None:
    fused, split = PARTS["fused gdn"], PARTS["split gdn"]
    assert fused.buffers == split.buffers
    by_rows = [sum(t.numel for t in part.tensors if "in_proj" in t.name) for part in (fused, split)]
    assert by_rows[0] == by_rows[1]


@pytest.mark.parametrize("part", [PARTS["fused gdn"], PARTS["mamba2"]], ids=["gdn", "mamba2"])
def test_a_recurrence_lies_in_slots_and_only_its_convolution_grows_with_drafts(part: Part) -> None:
    recurrence, conv = part.buffers
    assert {(b.home, b.rewind, b.per.grows) for b in part.buffers} == {(Home.SLOT, Rewind.SNAPSHOT, Grows.FIXED)}
    assert recurrence.drafting(3) == recurrence
    assert conv.drafting(3).shape == (conv.shape[0] + 3, conv.shape[1])


def test_a_block_may_have_another_name_in_its_layer() -> None:
    assert {t.name.partition(".")[0] for t in attention(ATTENTION, AttentionForm(at="mixer")).tensors} == {"mixer"}
    assert attention(ATTENTION, PLAIN).under("layers.0.").tensors[0].name == "layers.0.self_attn.q_proj.weight"
