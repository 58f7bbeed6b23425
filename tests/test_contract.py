from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.contract import NOTHING, Size, StructuralAccounting, account, size_of, sizes_by_role, total_size
from modelbones.dtypes import DType
from modelbones.families.registry import build, read_config
from modelbones.tensors import Group, Role, TensorPattern
from tests.published import edited, in_text, nested

EMBED = "model.language_model.embed_tokens.weight"

NAMES = st.sets(
    st.sampled_from(
        [
            EMBED,
            "lm_head.weight",
            "model.language_model.layers.3.self_attn.indexer.k_norm.bias",
            "model.language_model.layers.3.mlp.gate.weight",
            "layers.3.mlp.",
            "x.mlpx.y",
            ".mlp",
            "model.visual.blocks.0.norm1.weight",
            "model.visual",
            "model.vision",
            "model.vision_tower.x",
            "visual.patch",
            "a.model.visual.b",
            "",
        ]
    )
    | st.text(max_size=12),
    max_size=12,
)


def _as_the_seed_does(required: set[str], available: set[str]) -> StructuralAccounting:
    """The seed's loop, statement by statement."""
    missing = [name for name in sorted(required) if name not in available]
    unexpected, deferred = [], 0
    for name in sorted(available):
        if name in required:
            continue
        is_mlp = ".mlp." in name
        is_vision = name.startswith("model.visual.") or name.startswith("model.vision")
        if is_mlp or is_vision:
            deferred += 1
        else:
            unexpected.append(name)
    return StructuralAccounting(
        required=len(required),
        bound=len(required) - len(missing),
        missing=tuple(missing),
        unexpected=tuple(unexpected),
        deferred=deferred,
    )


@given(NAMES, NAMES)
def test_accounting_is_the_seeds_loop(required: set[str], available: set[str]) -> None:
    found = account(required, available)
    assert found == _as_the_seed_does(required, available)
    assert found.required == found.bound + len(found.missing)
    assert len(available) == found.bound + len(found.unexpected) + found.deferred
    assert found.is_complete() == (required <= available and not found.unexpected)


@given(NAMES, NAMES)
def test_a_list_with_repeated_names_accounts_like_its_set(required: set[str], available: set[str]) -> None:
    assert account(required, [*available, *available]) == account(required, available)
    assert account(required, frozenset(available)) == account(required, available)


@pytest.mark.parametrize(
    ("name", "is_deferred"),
    [
        ("model.language_model.layers.3.mlp.gate.weight", True),
        ("model.visual.blocks.0.norm1.weight", True),
        ("model.vision_tower.x", True),
        ("model.vision", True),
        ("model.visual", False),
        ("visual.blocks.0.norm1.weight", False),
        ("x.model.visual.y", False),
        ("model.layers.3.mlp", False),
        ("model.layers.3.mlpx.y", False),
        ("", False),
    ],
)
def test_which_names_the_accounting_defers(name: str, *, is_deferred: bool) -> None:
    found = account(set(), {name})
    assert (found.deferred, found.unexpected) == ((1, ()) if is_deferred else (0, (name,)))


def test_a_required_name_is_bound_even_where_it_looks_deferred() -> None:
    found = account({"a.mlp.b"}, {"a.mlp.b", "c.mlp.d"})
    assert (found.bound, found.deferred, found.is_complete()) == (1, 1, True)


def test_accounting_an_empty_checkpoint_misses_everything() -> None:
    found = account({"b", "a"}, ())
    assert found.missing == ("a", "b")
    assert (found.required, found.bound, found.deferred, found.unexpected) == (2, 0, 0, ())
    assert not found.is_complete()


@pytest.fixture(scope="module")
def sizes() -> dict[tuple[str, str], Size]:
    """By role and group, of the unquantised release."""
    skeleton = build(read_config(nested()))
    by_role = sizes_by_role(skeleton.patterns, skeleton.dtype)
    return {(role.value, group.value): size for (role, group), size in by_role.items()}


# Published sizes of the unquantised release; each derivation is from its shapes.
H = 4096
HEADS_WIDE = 64 * 128
KDA_LAYER = (
    3 * HEADS_WIDE * H  # q, k, v
    + 64 * H  # b
    + 2 * (128 * H + HEADS_WIDE * 128)  # f and g, each a then b
    + 3 * HEADS_WIDE * 4  # the convolutions
    + 128  # o_norm
    + H * HEADS_WIDE  # o
)  # all bf16
KDA_LAYER_F32 = 64 + HEADS_WIDE  # A_log, dt_bias
DSA_BLOCK = (
    1536 * H  # q_a
    + 1536  # its norm
    + 64 * 256 * 1536  # q_b
    + 512 * H  # kv_a
    + 512  # its norm
    + 64 * (256 + 256) * 512  # kv_b
    + H * 64 * 256  # o
    + 32 * 128 * 1536  # indexer wq_b
    + 128 * H  # wk
    + 2 * 128  # k_norm
    + 32 * H  # weights_proj
    + 4 * 128  # pool positions
    + 128 * H  # pool gate
)
ROUTER = 288 * H * 2 + 288 * 4


@pytest.mark.parametrize(
    ("role", "group", "tensors", "nbytes", "derived"),
    [
        ("kda", "trunk", 34 * 15, 9_366_356_992, 34 * (2 * KDA_LAYER + 4 * KDA_LAYER_F32)),
        ("dsa", "trunk", 11 * 14, 2_748_117_504, 11 * 2 * DSA_BLOCK),
        ("dsa", "mtp", 14, 249_828_864, 2 * DSA_BLOCK),
        # fn [24, 16384] bf16, base [24] and scale [3] fp32, at two sites.
        ("hyper_connection", "trunk", 270, 70_788_600, 45 * 2 * (24 * 16_384 * 2 + 27 * 4)),
        ("router", "trunk", 42 * 2, 99_138_816, 42 * ROUTER),
        ("router", "mtp", 2, 2_360_448, ROUTER),
        ("dense_mlp", "trunk", 9, 905_969_664, 3 * 3 * 12_288 * H * 2),
        ("shared_experts", "trunk", 42 * 3, 2_113_929_216, 42 * 3 * 2048 * H * 2),
        ("shared_experts", "mtp", 3, 50_331_648, 3 * 2048 * H * 2),
        ("experts", "trunk", 42 * 288 * 3, 608_811_614_208, 42 * 288 * 3 * 2048 * H * 2),
        ("experts", "mtp", 288 * 3, 14_495_514_624, 288 * 3 * 2048 * H * 2),
        # eh_proj [4096, 8192] and three norms.
        ("mtp_head", "mtp", 4, 67_133_440, (H * 2 * H + 3 * H) * 2),
        ("layer_norm", "trunk", 90, 737_280, 45 * 2 * H * 2),
        ("layer_norm", "mtp", 2, 16_384, 2 * H * 2),
        ("final_norm", "trunk", 1, 8_192, H * 2),
        ("embeddings", "trunk", 1, 1_268_776_960, 154_880 * H * 2),
        ("lm_head", "trunk", 1, 1_268_776_960, 154_880 * H * 2),
        ("vision", "vision", 347, 1_127_254_016, 563_627_008 * 2),
    ],
)
def test_each_roles_size_is_the_published_one(
    sizes: dict[tuple[str, str], Size], role: str, group: str, tensors: int, nbytes: int, derived: int
) -> None:
    assert derived == nbytes
    assert (sizes[role, group].tensors, sizes[role, group].nbytes) == (tensors, nbytes)


def test_no_role_is_left_out_above_and_all_sum_to_the_release(sizes: dict[tuple[str, str], Size]) -> None:
    assert len(sizes) == 18
    skeleton = build(read_config(nested()))
    total = total_size(skeleton.patterns, skeleton.dtype)
    assert sum(sizes.values(), NOTHING) == total
    # The published BF16 release.
    assert total == Size(tensors=38_770, parameters=321_323_031_390, nbytes=642_646_653_816)
    # 295,518 values in 291 tensors are kept in F32, everything else in BF16.
    assert total.nbytes == 2 * total.parameters + 2 * 295_518
    # The MTP layer: 889 tensors, 14,865,185,408 bytes.
    mtp = sum((size for (_, group), size in sizes.items() if group == "mtp"), NOTHING)
    assert (mtp.tensors, mtp.nbytes) == (889, 14_865_185_408)


def test_291_tensors_with_295_518_values_are_kept_in_f32() -> None:
    patterns = [p for p in build(read_config(nested())).patterns if p.permitted.dtypes == (DType.F32,)]
    # 34 x (A_log, dt_bias) + 45 x 4 hc + 43 e_score_correction_bias.
    assert sum(p.count for p in patterns) == 34 * 2 + 45 * 4 + 43 == 291
    assert sum(p.count * p.numel for p in patterns) == 34 * (64 + 8192) + 45 * 2 * 27 + 43 * 288 == 295_518


def test_a_float32_release_takes_four_bytes_a_parameter() -> None:
    skeleton = build(read_config(edited(nested(), in_text({"dtype": "float32"}))))
    total = total_size(skeleton.patterns, skeleton.dtype)
    assert total.nbytes == 4 * 321_323_031_390


def test_what_a_release_may_leave_out_is_in_no_size() -> None:
    optional = TensorPattern(name="x", shape=(8,), role=Role.MTP_HEAD, required=False)
    assert total_size([optional], DType.BF16) == NOTHING
    assert sizes_by_role([optional], DType.BF16) == {}
    assert size_of(optional, DType.BF16) == Size(tensors=1, parameters=8, nbytes=16)


def test_a_pattern_names_every_tensor_it_counts() -> None:
    pattern = TensorPattern(name="m.{expert}.w", shape=(2, 3), role=Role.EXPERTS, num_experts=2)
    placed = pattern.placed("layers.{layer}.", layers=(3, 7), group=Group.MTP)
    assert list(placed.names()) == ["layers.3.m.0.w", "layers.3.m.1.w", "layers.7.m.0.w", "layers.7.m.1.w"]
    assert (placed.count, placed.numel, placed.group) == (4, 6, Group.MTP)


def test_every_pattern_of_the_published_model_names_as_many_tensors_as_it_counts() -> None:
    patterns = build(read_config(nested())).patterns
    assert all(sum(1 for _ in pattern.names()) == pattern.count for pattern in patterns)
    names = [name for pattern in patterns for name in pattern.names()]
    assert len(names) == len(set(names)) == 38_770 + 2  # and the MTP layer's two optional copies
