"""The published skip list, by its rule: which modules it leaves unquantised."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.quant.exclusions import component_match
from tests import release
from tests.release import skip_list

PLAIN = {name.removesuffix(".weight") for name in release.bf16() if not release.is_fp8(name)}
PACKED = {name.removesuffix(".weight") for name in release.bf16() if release.is_fp8(name)}


def test_the_published_list_has_its_1509_entries() -> None:
    entries = skip_list()
    assert len(entries) == len(set(entries)) == 1_509 == 1_085 + 347 + 68 + 9
    assert entries == sorted(entries)
    assert sum(entry.startswith("model.layers.45.") for entry in entries) == 18
    assert sum(entry.startswith("visual.") for entry in entries) == 347


def test_it_excludes_exactly_the_unquantised_tensors_of_the_release() -> None:
    is_excluded = component_match(skip_list())
    assert len(PLAIN) == 1_432
    assert len(PACKED) == 37_338
    assert all(map(is_excluded, PLAIN))
    assert not any(map(is_excluded, PACKED))


def test_the_entries_that_match_nothing_are_the_runtime_names() -> None:
    runs = set()
    for module in PLAIN:
        parts = module.split(".")
        runs |= {".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}
    idle = [entry for entry in skip_list() if entry.removeprefix("model.") not in runs]
    assert Counter(entry.rpartition(".")[2] for entry in idle) == {
        **{"qkv_proj": 34, "fused_qkvbfg_a_proj": 34},
        **{"attn_mha": 1, "attn_mqa": 1, "hyper_connection": 1, "mapping_proj": 1, "router": 1},
    }


@pytest.mark.parametrize(
    ("entry", "module", "matches"),
    [
        ("model.layers.3.mlp.gate", "model.language_model.layers.3.mlp.gate", True),
        ("model.layers.3.mlp.gate", "model.layers.3.mlp.gate", True),
        ("model.layers.3.mlp.gate", "language_model.model.layers.3.mlp.gate", True),
        ("model.layers.3.mlp.gate", "model.language_model.layers.33.mlp.gate", False),
        ("model.layers.3.mlp.gate", "model.language_model.layers.3.mlp.gate_proj", False),
        ("model.layers.3", "model.language_model.layers.3.self_attn.o_proj", True),
        ("model.language_model.layers.3", "model.language_model.layers.3.self_attn.o_proj", True),
        ("model.language_model.layers.3", "model.layers.3.self_attn.o_proj", False),
        ("visual", "model.visual.blocks.0.attn.qkv", True),
        ("model.visual", "model.visual.blocks.0.attn.qkv", True),
        ("visual", "model.visually.blocks", False),
        ("dt_bias", "model.language_model.layers.0.self_attn.dt_bias", True),
        ("lm_head", "lm_head", True),
        ("lm_head", "model.lm_head_norm", False),
        ("gate", "model.layers.3.mlp.gate", True),
        ("gate", "model.layers.3.mlp.gate_proj", False),
        ("self_attn.q_proj", "model.layers.3.self_attn.q_proj", True),
        ("q_proj.self_attn", "model.layers.3.self_attn.q_proj", False),
        ("self_attn.q_proj", "model.layers.3.self_attn.x.q_proj", False),
    ],
)
def test_an_entry_matches_whole_parts_in_a_row(entry: str, module: str, matches: bool) -> None:
    assert component_match([entry])(module) is matches


def test_no_entry_excludes_nothing() -> None:
    is_excluded = component_match([])
    assert not is_excluded("lm_head")
    assert not is_excluded("")


_PARTS = st.lists(st.sampled_from(["model", "layers", "3", "33", "mlp", "gate", "visual", "x"]), min_size=1, max_size=6)


@given(st.lists(_PARTS, max_size=4), _PARTS)
def test_matching_is_the_search_for_a_run_of_parts(entries: list[list[str]], module: list[str]) -> None:
    def naive(entry: list[str]) -> bool:
        wanted = entry[1:] if entry[0] == "model" and len(entry) > 1 else entry
        return any(module[start : start + len(wanted)] == wanted for start in range(len(module)))

    spelled = [".".join(entry) for entry in entries]
    assert component_match(spelled)(".".join(module)) is any(map(naive, entries))
