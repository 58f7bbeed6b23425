"""Weight bytes of the widest rank: published totals, splits by hand, headers against patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.checkpoint.directory import read_checkpoint
from modelbones.cli import main
from modelbones.dialects.known import DIALECTS
from modelbones.errors import SourceError
from modelbones.families.registry import build, read_config, read_mapping
from modelbones.plan.plan import ranks_of
from modelbones.plan.weights import from_census, from_recipe
from modelbones.quant.registry import RECIPES
from modelbones.ranks import ONE_RANK, Axis, Ranks
from tests import release
from tests.audit.stores import census_of, tiny_config
from tests.plan.asking import asked, skeleton

HIDDEN, LAYERS_KDA, LAYERS_DSA, LAYERS_MOE = 4096, 34, 11, 42


def weights(preset: str = "glm-5.3-flash", **flags: Any) -> dict[str, int]:
    request = asked(preset, **flags)
    return dict(from_recipe(request.skeleton, request.recipe, ranks_of(request), with_mtp=request.spec_on))


@pytest.mark.parametrize(
    ("scheme", "published"), [("none", 642_646_653_816), ("fp8", 328_326_771_576), ("nvfp4", 194_644_803_576)]
)
def test_on_one_rank_with_the_mtp_layer_the_weights_are_the_published_payload(scheme: str, published: int) -> None:
    found = from_recipe(skeleton(), RECIPES.get(scheme), ONE_RANK, with_mtp=True)
    assert found.total() == published


def test_the_mtp_layer_is_loaded_only_to_draft() -> None:
    """14,865,185,408 bytes: experts, shared expert, router, attention, two projections, norms."""
    experts = 289 * 3 * HIDDEN * 2048 * 2
    router = 288 * HIDDEN * 2 + 288 * 4
    head = HIDDEN * 2 * HIDDEN * 2 + 3 * HIDDEN * 2
    norms = 2 * HIDDEN * 2
    mtp = experts + router + head + norms + dsa_bytes(1)
    assert mtp == 14_865_185_408
    assert sum(weights(spec_on=True, num_spec=1).values()) == 642_646_653_816
    assert sum(weights().values()) == 642_646_653_816 - mtp


def dsa_bytes(tp: int) -> int:
    """One sparse layer: query heads, their latent's two halves and the output divide; all else is whole."""
    whole = 1536 * HIDDEN + 1536 + 512 * HIDDEN + 512
    indexer = 32 * 128 * 1536 + 128 * HIDDEN + 2 * 128 + 32 * HIDDEN + 4 * 128 + 128 * HIDDEN
    heads = 64 // tp
    return 2 * (whole + indexer + heads * 256 * 1536 + heads * 512 * 512 + HIDDEN * heads * 256)


def kda_bytes(tp: int) -> int:
    """One KDA layer: everything by heads but the two small projections and the norm."""
    width, heads = 8192 // tp, 64 // tp
    by_heads = 3 * width * HIDDEN + 3 * width * 4 + heads * HIDDEN + 2 * width * 128 + HIDDEN * width
    whole = 2 * 128 * HIDDEN + 128
    return 2 * (by_heads + whole) + 4 * (heads + width)


@pytest.mark.parametrize("ep", [1, 4])
def test_four_ranks_split_heads_and_experts_and_repeat_the_rest(ep: int) -> None:
    """With ep 288 / 4 = 72 whole experts a rank; without, 2,048 / 4 = 512 rows of each of 288."""
    whole = weights()
    found = weights(tp=4, ep=ep)
    experts, rows = (72, 2048) if ep == 4 else (288, 512)
    assert found["weights.experts"] == LAYERS_MOE * experts * 3 * HIDDEN * rows * 2 == 152_202_903_552
    assert found["weights.dsa"] == LAYERS_DSA * dsa_bytes(4)
    assert found["weights.kda"] == LAYERS_KDA * kda_bytes(4)
    assert found["weights.embeddings"] == found["weights.lm_head"] == 154_880 // 4 * HIDDEN * 2
    assert found["weights.dense_mlp"] == 3 * 3 * HIDDEN * 12_288 // 4 * 2
    assert found["weights.shared_experts"] == LAYERS_MOE * 3 * HIDDEN * 512 * 2
    for role in ("router", "layer_norm", "final_norm", "hyper_connection", "vision"):
        assert found[f"weights.{role}"] == whole[f"weights.{role}"]
    assert found["weights.router"] == LAYERS_MOE * (288 * HIDDEN * 2 + 288 * 4)


def test_key_heads_fewer_than_the_ranks_are_repeated() -> None:
    """Llama-3.1-8B at tp 16: two query heads and one whole key head of eight a rank."""
    assert weights("llama-3.1-8b", tp=16)["weights.attention"] == 32 * 2 * 128 * HIDDEN * (2 + 1 + 1 + 2)


def test_heads_that_do_not_divide_are_held_in_whole_heads_by_the_widest_rank() -> None:
    """64 heads on 3 ranks: 22, not 21.33."""
    found = weights(engine="metrale", tp=3)["weights.dsa"]
    rows = 22 * (256 * 1536 + 512 * 512 + 256 * HIDDEN)
    whole = dsa_bytes(1) // 2 - 64 * (256 * 1536 + 512 * 512 + 256 * HIDDEN)
    assert found == LAYERS_DSA * 2 * (whole + rows)


def test_vllm_cuts_inside_experts_by_data_parallel_ranks_too() -> None:
    """Without ep its expert layers flatten tp over dp: half of each expert on either replica."""
    assert weights(dp=2)["weights.experts"] * 2 == weights()["weights.experts"]
    assert weights(dp=2)["weights.kda"] == weights()["weights.kda"]
    assert weights(engine="metrale", dp=2)["weights.experts"] == weights()["weights.experts"]


@given(
    preset=st.sampled_from(["glm-5.3-flash", "llama-3.1-8b", "qwen3-next-80b-a3b", "gpt-oss-120b", "kimi-linear-48b"]),
    scheme=st.sampled_from([None, "fp8", "nvfp4", "int4-pack"]),
    tp=st.sampled_from([1, 2, 4, 8]),
    by_experts=st.booleans(),
)
def test_shares_of_dividing_ranks_cover_the_whole_and_more_ranks_hold_no_more(
    preset: str, scheme: str | None, tp: int, by_experts: bool
) -> None:
    if preset == "gpt-oss-120b":
        # Published with its experts stacked and transposed: the other schemes do not pack them.
        scheme = None

    def of(n: int) -> dict[str, int]:
        ep = n if by_experts else 1
        inside = {Axis.EXPERTS: ep, Axis.EXPERT_FFN: 1 if by_experts else n}
        ranks = Ranks.of({Axis.HEADS: n, Axis.FFN: n, Axis.VOCAB: n, **inside})
        recipe = None if scheme is None else RECIPES[scheme]
        return dict(from_recipe(skeleton(preset), recipe, ranks, with_mtp=False))

    whole, share, twice = of(1), of(tp), of(2 * tp)
    for role, held in share.items():
        assert held * tp >= whole[role]
        assert twice[role] <= held <= whole[role]
    if scheme is None:
        for role in ("weights.embeddings", "weights.lm_head"):
            assert share[role] * tp >= whole[role]
            assert share[role] * tp == whole[role] or skeleton(preset).outer[0].shape[0] % tp


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Shrunk checkpoints in every scheme and dialect that go together: those `check` finds whole."""
    folder = tmp_path_factory.mktemp("stored")
    made = {}
    for scheme in ("none", *(name for name in RECIPES if name != "mxfp4-blocks")):
        for dialect in ("published", *DIALECTS):
            out = folder / f"{scheme}-{dialect}"
            words = ["synth", "glm-5.3-flash", str(out), "--shrink", "--scheme", scheme, "--dialect", dialect]
            if main([*words, "--fill", "sparse", "--json"]) == 0 and main(["check", str(out)]) == 0:
                made[scheme, dialect] = out
    return made


RANKS = (
    ONE_RANK,
    Ranks.of({Axis.HEADS: 2, Axis.FFN: 2, Axis.VOCAB: 2, Axis.EXPERT_FFN: 2}),
    Ranks.of({Axis.HEADS: 4, Axis.FFN: 4, Axis.VOCAB: 4, Axis.EXPERTS: 4}),
    Ranks.of({Axis.HEADS: 3, Axis.FFN: 3, Axis.VOCAB: 3, Axis.EXPERTS: 3}),
)


def test_every_stored_byte_is_counted_in_every_scheme_and_dialect(stored: dict[tuple[str, str], Path]) -> None:
    assert {("none", dialect) for dialect in ("published", "transformers", "mlx", "text-only")} <= stored.keys()
    assert {(scheme, "published") for scheme in RECIPES if scheme != "mxfp4-blocks"} <= stored.keys()
    for path in stored.values():
        census = read_checkpoint(path)
        found = from_census(build(read_config(path)), census.tensors, ONE_RANK, with_mtp=True, place="it")
        assert found.total() == census.payload_bytes, path.name


def test_headers_and_patterns_give_the_same_share(stored: dict[tuple[str, str], Path]) -> None:
    for (scheme, dialect), path in stored.items():
        if scheme != "none" and dialect != "published":
            continue
        model, census = build(read_config(path)), read_checkpoint(path)
        for ranks in RANKS:
            for with_mtp in (False, True):
                by_headers = from_census(model, census.tensors, ranks, with_mtp=with_mtp, place="it")
                by_patterns = from_recipe(model, RECIPES.get(scheme), ranks, with_mtp=with_mtp)
                assert by_headers == by_patterns, (scheme, dialect, ranks, with_mtp)


@pytest.mark.parametrize("preset", ["gpt-oss-120b", "qwen3.5-35b-a3b", "kimi-linear-48b"])
@pytest.mark.parametrize("dialect", ["published", "transformers"])
def test_other_families_headers_and_patterns_agree(
    preset: str, dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "it"
    assert main(["synth", preset, str(out), "--shrink", "--dialect", dialect]) == 0
    model, census = build(read_config(out)), read_checkpoint(out)
    for ranks in RANKS[:3]:
        by_headers = from_census(model, census.tensors, ranks, with_mtp=False, place="it")
        assert by_headers == from_recipe(model, None, ranks, with_mtp=False)


def test_weights_that_are_not_stored_are_refused_not_counted_as_nothing(
    stored: dict[tuple[str, str], Path],
) -> None:
    path = stored["none", "published"]
    tensors = {name: found for name, found in read_checkpoint(path).tensors.items() if name != "lm_head.weight"}
    with pytest.raises(SourceError) as refused:
        from_census(build(read_config(path)), tensors, ONE_RANK, with_mtp=False, place="it")
    assert str(refused.value) == (
        "it: 1 tensors that would be loaded are missing, lm_head.weight among them; "
        "their bytes cannot be counted; see `modelbones check`, or plan from its config.json"
    )


def test_a_pruned_checkpoint_is_counted_by_the_experts_each_layer_keeps() -> None:
    """Bug: a build whose router has fewer rows was refused as incomplete. Layer 3 keeps 6 of 8 experts:
    2 experts x 3 matrices of 128 x 128 in bf16 less, and 2 rows of the router (128 bf16) and its bias (f32)."""
    stores = release.bf16(release.TINY)
    gone = (f"{release.LAYERS}3.mlp.experts.6.", f"{release.LAYERS}3.mlp.experts.7.")
    pruned = {name: stored for name, stored in stores.items() if not name.startswith(gone)}
    router = f"{release.LAYERS}3.mlp.gate."
    pruned[f"{router}weight"] = ("BF16", (6, 128))
    pruned[f"{router}e_score_correction_bias"] = ("F32", (6,))
    tiny = build(read_mapping(tiny_config(), place="config.json"))

    def total(kept: release.Stores) -> int:
        tensors = census_of(kept).tensors
        return from_census(tiny, tensors, ONE_RANK, with_mtp=True, place="memory").total()

    assert total(stores) - total(pruned) == 2 * 3 * 128 * 128 * 2 + 2 * 128 * 2 + 2 * 4
