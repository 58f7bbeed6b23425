from __future__ import annotations

from typing import Any

from hypothesis import given

from modelbones.families.registry import build, preset, read_config
from modelbones.skeleton import Mlp
from tests.families.mutating import mutants, reads_or_refuses

CONFIG = preset("glm-4.7-flash")


def test_a_token_costs_a_latent_and_a_rotary_key_on_47_layers() -> None:
    budget = build(read_config(CONFIG)).budget()
    assert (budget.fixed(), budget.per_token()) == (0, 47 * (512 + 64) * 2)
    assert budget.for_sequence(131_072) == 54_144 * 131_072 == 7_096_762_368


def test_one_dense_layer_then_46_routed_ones_and_the_mtp_layer_at_47() -> None:
    skeleton = build(read_config(CONFIG))
    assert [layer.mlp for layer in skeleton.layers] == [Mlp.DENSE] + [Mlp.ROUTED_MOE] * 46
    assert skeleton.mtp is not None
    assert skeleton.mtp.index == 47


def test_heads_need_not_divide_the_width() -> None:
    # 20 heads of 256, against 2,048.
    shapes = {p.name: p.shape for p in build(read_config(CONFIG)).patterns}
    assert shapes["model.layers.{layer}.self_attn.q_b_proj.weight"] == (5120, 768)
    assert shapes["model.layers.{layer}.self_attn.kv_b_proj.weight"] == (20 * (192 + 256), 512)
    assert shapes["model.layers.{layer}.self_attn.o_proj.weight"] == (2048, 5120)


@given(mutants(CONFIG))
def test_any_change_reads_or_is_refused(config: dict[str, Any]) -> None:
    reads_or_refuses(config)
