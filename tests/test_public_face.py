from __future__ import annotations

import subprocess
import sys

import pytest

import modelbones


@pytest.mark.parametrize("name", modelbones.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(modelbones, name) is not None
    assert name in dir(modelbones)


SEED_NAMES = [
    "read_config",
    "build",
    "Glm5NextTextSkeleton",
    "SkeletonLayer",
    "StructuralAccounting",
    "StateBudget",
    "PerSequenceState",
    "per_sequence_state_bytes",
    "dsa_capacity",
    "max_dsa_context",
    "indexer_state_bytes",
    "Mixer",
    "Mlp",
    "Site",
    "StateKind",
    "ResidualStep",
    "FinalStep",
]


@pytest.mark.parametrize("name", SEED_NAMES)
def test_the_seeds_names_are_public(name: str) -> None:
    assert name in modelbones.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as error:
        modelbones.Sceleton  # noqa: B018
    assert str(error.value) == "module 'modelbones' has no attribute 'Sceleton'"


def test_the_enums_are_in_upper_case_as_documented() -> None:
    assert [m.name for m in (modelbones.Mixer.KDA, modelbones.Mixer.DSA)] == ["KDA", "DSA"]
    assert [m.name for m in modelbones.Mlp][:2] == ["DENSE", "ROUTED_MOE"]
    assert [m.name for m in modelbones.Site] == ["ATTN", "FFN"]
    assert modelbones.StateKind.KDA_RECURRENT.name == "KDA_RECURRENT"
    assert modelbones.StateKind.SPARSE_KV.name == "SPARSE_KV"


@pytest.mark.parametrize(
    "name", ["UsageError", "SourceError", "ConfigError", "UnknownArchitectureError", "UnknownSchemeError"]
)
def test_every_error_is_a_modelbones_error(name: str) -> None:
    assert issubclass(getattr(modelbones, name), modelbones.ModelbonesError)


HEAVY = ("numpy", "torch", "rich", "orjson", "transformers", "ml_dtypes", "huggingface_hub")


@pytest.mark.parametrize(
    "code",
    [
        "import modelbones",
        "import modelbones; modelbones.build(modelbones.read_config('glm-5.3-flash')).budget().for_sequence(9)",
        "import modelbones; modelbones.per_sequence_state_bytes({'model_type': 'llama'}, 1, True)",
    ],
)
def test_a_config_is_answered_without_any_heavy_import(code: str) -> None:
    probe = f"{code}; import sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_importing_the_package_imports_no_module_of_it() -> None:
    probe = "import modelbones, sys; print([name for name in sys.modules if name.startswith('modelbones.')])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
