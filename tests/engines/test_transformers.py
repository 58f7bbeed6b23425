from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelbones.dtypes import DType
from modelbones.engines.transformers import CacheClass, layer_bytes, sequence_bytes, stored
from modelbones.errors import UsageError
from modelbones.families.registry import build, preset, preset_names, read_config
from modelbones.skeleton import Mixer, Skeleton


def _skeleton(name: str) -> Skeleton:
    return build(read_config(preset(name)))


# Bytes of a bf16 DynamicCache, measured with transformers 5.23 at full sizes of what the cache keeps.
@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("glm-5.3-flash", {6: 149_392_516, 7: 149_409_434}),
        ("kimi-linear-48b", {6: 43_957_504, 7: 43_965_568}),
        ("deepseek-v3", {6: 421_632, 7: 491_904}),
        ("kimi-k2.5", {6: 421_632, 7: 491_904}),
        ("deepseek-v3.2", {6: 515_328, 7: 601_216}),
        ("glm-5.2", {6: 571_392, 7: 666_624}),
        ("glm-4.7-flash", {6: 324_864, 7: 379_008}),
        ("deepseek-v4-flash", {135: 7_691_520, 136: 7_436_800}),
        ("llama-3.1-8b", {6: 786_432, 7: 917_504}),
        ("qwen3-next-80b-a3b", {6: 78_004_224, 7: 78_028_800}),
        ("qwen3.5-35b-a3b", {6: 65_003_520, 7: 65_024_000}),
        ("nemotron-3-nano-30b-a3b", {6: 49_401_856, 7: 49_408_000}),
        ("gpt-oss-120b", {6: 442_368, 7: 516_096}),
        ("gemma-3-4b", {6: 835_584, 7: 974_848}),
    ],
)
def test_a_dynamic_cache_holds_the_bytes_that_were_measured(name: str, measured: dict[int, int]) -> None:
    skeleton = _skeleton(name)
    assert {tokens: sequence_bytes(skeleton, tokens=tokens) for tokens in measured} == measured


def test_a_kda_layer_keeps_a_kernel_wide_window_and_its_recurrence_in_fp32() -> None:
    layer = _skeleton("kimi-linear-48b").layers[0]
    # 32 x 128 x 128 fp32, and 4 rows, not 3, of 3 x 4,096 channels bf16.
    assert layer_bytes(layer, tokens=1, dtype=DType.BF16) == 2_097_152 + 98_304
    assert layer_bytes(layer, tokens=1, dtype=DType.F32) == 2_097_152 + 2 * 98_304


def test_the_validity_flag_of_a_pooled_indexer_takes_an_element_of_the_model_s_dtype() -> None:
    layer = next(layer for layer in _skeleton("glm-5.3-flash").layers if layer.mixer is Mixer.DSA)
    # A latent of 512 and one packed row of 2 x 128 + 1; the logical row is a byte shorter.
    assert layer_bytes(layer, tokens=1, dtype=DType.BF16) == 512 * 2 + 257 * 2
    assert sum(buffer.nbytes(tokens=1) for buffer in layer.buffers) == 512 * 2 + 513


def test_a_window_holds_one_row_fewer_where_it_grows_and_all_where_it_is_static() -> None:
    layer = next(layer for layer in _skeleton("gpt-oss-120b").layers if layer.mixer is Mixer.WINDOW)
    row = 2 * 8 * 64 * 2
    assert layer_bytes(layer, tokens=500, dtype=DType.BF16) == 127 * row
    static = {"cache": CacheClass.STATIC, "max_cache_len": 1_000}
    assert layer_bytes(layer, tokens=500, dtype=DType.BF16, **static) == 128 * row  # type: ignore[arg-type]


def test_a_row_that_is_key_and_value_is_stored_twice_only_without_compression() -> None:
    window, sparse, heavy = _skeleton("deepseek-v4-flash").layers[1:4]
    assert [b.name for b in stored(window, dtype=DType.BF16)] == ["window", "window"]
    assert [b.name for b in stored(sparse, dtype=DType.BF16)].count("window") == 1
    # The measured layers at 135 tokens: 127 rows once or twice, pools, tails and overlap.
    measured = [layer_bytes(layer, tokens=135, dtype=DType.BF16) for layer in (window, sparse, heavy)]
    assert measured == [260_096, 203_008, 145_408]


def test_a_static_cache_is_as_long_as_it_will_ever_be() -> None:
    skeleton = _skeleton("llama-3.1-8b")
    static = sequence_bytes(skeleton, tokens=1, cache=CacheClass.STATIC, max_cache_len=4_096)
    assert static == sequence_bytes(skeleton, tokens=4_096)


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("cache", CacheClass)
def test_nothing_is_held_before_the_first_token(name: str, cache: CacheClass) -> None:
    if name == "deepseek-v4-flash" and cache is CacheClass.STATIC:
        pytest.skip("refused: see below")
    assert sequence_bytes(_skeleton(name), tokens=0, cache=cache, max_cache_len=8) == 0


@pytest.mark.parametrize(("tokens", "longest"), [(9, 8), (0, 0), (1, None)])
def test_a_static_cache_that_is_too_short_is_refused(tokens: int, longest: int | None) -> None:
    layer = _skeleton("llama-3.1-8b").layers[0]
    with pytest.raises(UsageError) as error:
        layer_bytes(layer, tokens=tokens, dtype=DType.BF16, cache=CacheClass.STATIC, max_cache_len=longest)
    assert str(error.value) == (
        f"transformers: found max_cache_len {longest} for {tokens} tokens; "
        "expected at least as many; a static cache never grows"
    )


def test_a_static_cache_of_compressing_layers_is_refused() -> None:
    """transformers 5.23 has no static class for them and stops with a KeyError."""
    with pytest.raises(UsageError) as error:
        sequence_bytes(_skeleton("deepseek-v4-flash"), tokens=1, cache=CacheClass.STATIC, max_cache_len=8)
    assert str(error.value) == (
        "transformers: layer 2 compresses older tokens; expected a layer with a static cache class; "
        "use the dynamic cache"
    )


@given(st.sampled_from(preset_names()), st.integers(1, 10_000))
def test_a_growing_cache_never_holds_less_than_the_state_but_for_windows(name: str, tokens: int) -> None:
    skeleton = _skeleton(name)
    window_row = sum(
        buffer.row_bytes()
        for layer in skeleton.layers
        for buffer in layer.buffers
        if buffer.per.grows.value == "window"
    )
    state = skeleton.budget().for_sequence(tokens)
    assert sequence_bytes(skeleton, tokens=tokens, dtype=DType.BF16) >= state - window_row
