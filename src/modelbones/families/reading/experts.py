"""The counts and widths of a routed block."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Section, integer
from modelbones.parts.mlp import MoeSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKeys:
    """What a config calls the three counts, the published spelling first."""

    routed: tuple[str, ...] = ("n_routed_experts", "num_local_experts")
    chosen: tuple[str, ...] = ("num_experts_per_tok",)
    shared: tuple[str, ...] = ("n_shared_experts",)


DEEPSEEK_KEYS = ExpertKeys()


def read_experts(text: Section, *, hidden_size: int, keys: ExpertKeys = DEEPSEEK_KEYS) -> MoeSizes:
    """The sizes of the routed block; every one is required, and no more are chosen than there are."""
    routed = [text.at(key) for key in keys.routed]
    chosen = [text.at(key) for key in keys.chosen]
    sizes = MoeSizes(
        hidden_size=hidden_size,
        n_routed_experts=integer(*routed),
        num_experts_per_tok=integer(*chosen),
        n_shared_experts=integer(*(text.at(key) for key in keys.shared), minimum=0),
        moe_intermediate_size=integer(text.at("moe_intermediate_size")),
    )
    if text.ledger.is_sound(routed[0], chosen[0]) and sizes.num_experts_per_tok > sizes.n_routed_experts:
        expected = f"at most {keys.routed[0]}, {sizes.n_routed_experts}"
        text.ledger.fault(chosen[0].path, found=sizes.num_experts_per_tok, expected=expected)
    return sizes
