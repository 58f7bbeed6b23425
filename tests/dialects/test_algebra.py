"""Each move by hand: the names and shapes it makes, and what they stand for."""

from __future__ import annotations

from modelbones.dialects.algebra import Absorb, Change, Concat, Move, Rename, Reshape, Stack, Unstack, apply
from modelbones.ranks import Axis, split
from modelbones.tensors import Role, TensorPattern

L = "m.layers.{layer}."
E = "experts.{expert}."


def pattern(name: str, *shape: int, layers: tuple[int, ...] = (0, 1), experts: int = 0) -> TensorPattern:
    role = Role.EXPERTS if experts else Role.ATTENTION
    return TensorPattern(name=name, shape=shape, role=role, layers=layers, num_experts=experts)


def one(move: Move, *patterns: TensorPattern) -> Change:
    (change,) = move.changes(patterns)
    return change


def test_a_rename_keeps_the_stem_and_stands_for_the_old_name() -> None:
    old = pattern(f"{L}hc_attn_fn", 24, 512)
    (new,) = one(Rename(kind="x", old="hc_attn_fn", new="attn_hc.fn"), pattern(f"{L}q", 1), old).new
    assert (new.name, new.shape) == (f"{L}attn_hc.fn", (24, 512))
    assert new.stands_for == (f"{L}hc_attn_fn",)
    assert new.logical_each == 1


def test_a_leaf_is_one_only_at_a_dot_or_as_the_whole_name() -> None:
    move = Rename(kind="x", old="norm.weight", new="n.weight")
    found = [change.old[0].name for change in move.changes((pattern("norm.weight", 4), pattern("q_norm.weight", 4)))]
    assert found == ["norm.weight"]


def test_a_rename_of_a_renamed_one_stands_for_the_first_name() -> None:
    (first,) = one(Rename(kind="x", old="a", new="b"), pattern(f"{L}a", 1)).new
    (second,) = one(Rename(kind="x", old="b", new="c"), first).new
    assert (second.name, second.stands_for) == (f"{L}c", (f"{L}a",))


def test_a_concat_adds_up_one_dimension() -> None:
    parts = [pattern(f"{L}{x}_proj.weight", rows, 8) for x, rows in (("q", 6), ("k", 2), ("v", 4))]
    move = Concat(kind="x", old=tuple(f"{x}_proj.weight" for x in "qkv"), new="qkv_proj.weight")
    change = one(move, *parts)
    (new,) = change.new
    assert change.old == tuple(parts)
    assert (new.name, new.shape, new.logical_each) == (f"{L}qkv_proj.weight", (12, 8), 3)
    assert new.stands_for == tuple(part.name for part in parts)
    columns = Concat(kind="x", old=("a.weight", "b.weight"), new="ab.weight", dim=-1)
    (wide,) = one(columns, pattern("a.weight", 2, 3, 4), pattern("b.weight", 2, 3, 6)).new
    assert wide.shape == (2, 3, 10)


def test_nothing_is_joined_where_a_leaf_is_missing_or_in_other_layers() -> None:
    move = Concat(kind="x", old=("a.weight", "b.weight"), new="ab.weight")
    assert list(move.changes((pattern(f"{L}a.weight", 2, 2),))) == []
    elsewhere = pattern(f"{L}b.weight", 2, 2, layers=(1, 2))
    assert list(move.changes((pattern(f"{L}a.weight", 2, 2), elsewhere))) == []
    assert list(move.changes((pattern(f"{L}x.a.weight", 2, 2), pattern(f"{L}y.b.weight", 2, 2)))) == []


def test_a_stack_puts_the_experts_in_front_and_joins_rows_first() -> None:
    gate, up = (pattern(f"{L}mlp.{E}{x}_proj.weight", 6, 8, experts=4) for x in ("gate", "up"))
    move = Stack(kind="x", old=("gate_proj.weight", "up_proj.weight"), new="experts.gate_up_proj")
    (new,) = one(move, gate, up).new
    assert (new.name, new.shape) == (f"{L}mlp.experts.gate_up_proj", (4, 12, 8))
    assert (new.num_experts, new.stacked, new.count, new.logical_each) == (0, 4, 2, 8)
    assert new.split == split(Axis.EXPERTS, 0, 4)
    turned = Stack(kind="x", old=move.old, new=move.new, is_transposed=True)
    assert one(turned, gate, up).new[0].shape == (4, 8, 12)


def test_an_unstack_gives_each_expert_its_rows() -> None:
    whole = TensorPattern(name=f"{L}mlp.experts.gate_up_proj", shape=(4, 12, 8), role=Role.EXPERTS, layers=(0, 1))
    move = Unstack(kind="x", old="experts.gate_up_proj", new=("gate_proj.weight", "up_proj.weight"))
    gate, up = one(move, whole).new
    assert (gate.name, gate.shape, gate.num_experts) == (f"{L}mlp.{E}gate_proj.weight", (6, 8), 4)
    assert (up.name, up.shape) == (f"{L}mlp.{E}up_proj.weight", (6, 8))
    assert sum(part.numel * part.count for part in (gate, up)) == whole.numel * whole.count
    (back,) = one(Stack(kind="x", old=move.new, new=move.old), gate, up).new
    assert (back.name, back.shape) == (whole.name, whole.shape)


def test_a_reshape_keeps_the_name_and_says_nothing_where_nothing_changes() -> None:
    move = Reshape(kind="x", leaf="conv.weight", shape=lambda shape: (shape[0], shape[2], shape[1]))
    (new,) = one(move, pattern(f"{L}conv.weight", 6, 1, 4)).new
    assert (new.name, new.shape, new.stands_for) == (f"{L}conv.weight", (6, 4, 1), (f"{L}conv.weight",))
    assert list(move.changes((pattern(f"{L}conv.weight", 6, 4, 4),))) == []


def test_absorbed_attention_is_two_stacks_of_matrices_a_head() -> None:
    """GLM-5.3-Flash: 64 heads, a latent of 512, 256 key and 256 value rows a head."""
    kv_b = pattern(f"{L}kv_b_proj.weight", 64 * (256 + 256), 512)
    cut = split(Axis.HEADS, 1, 64 * 256, 64)
    o_proj = TensorPattern(name=f"{L}o_proj.weight", shape=(4096, 64 * 256), role=Role.DSA, layers=(0, 1), split=cut)
    query, out = one(Absorb(kind="x"), kv_b, o_proj).new
    assert (query.name, query.shape) == (f"{L}embed_q.weight", (64, 512, 256))
    assert (out.name, out.shape) == (f"{L}unembed_out.weight", (64, 256, 512))
    assert query.numel + out.numel == kv_b.numel
    assert (query.logical_each, out.logical_each) == (1, 0)
    uncut = TensorPattern(name=o_proj.name, shape=o_proj.shape, role=Role.DSA, layers=(0, 1))
    assert list(Absorb(kind="x").changes((kv_b, uncut))) == [], "the number of heads is in the cut of o_proj"


def test_applied_changes_stand_where_the_first_old_one_stood() -> None:
    a, b, c = (pattern(f"{name}.weight", 2, 2) for name in "abc")
    change = one(Concat(kind="x", old=("a.weight", "c.weight"), new="ac.weight"), a, b, c)
    assert [each.name for each in apply((a, b, c), change)] == ["ac.weight", "b.weight"]
    assert apply((b,), change) == (b,)
