"""How many experts there are and are chosen, and which layers have them, by the Qwen keys."""

from __future__ import annotations

from modelbones.config import Absent, Section, indices, integer
from modelbones.skeleton import Mlp


def experts(text: Section, *names: str) -> tuple[int, int]:
    """Experts under any of `names`, and `num_experts_per_tok` of them, chosen for each token."""
    spots, chosen = [text.at(name) for name in names], text.at("num_experts_per_tok")
    total, per_token = integer(*spots), integer(chosen)
    if text.ledger.is_sound(spots[0], chosen) and per_token > total:
        text.ledger.fault(chosen.path, found=per_token, expected=f"at most {names[0]}, {total}")
    return total, per_token


def mlps_by_step(text: Section, num_layers: int, *, source: str) -> tuple[Mlp, ...]:
    """The MLP of each layer: routed on every `decoder_sparse_step`-th that `mlp_only_layers` does not name."""
    step, only = text.at("decoder_sparse_step"), text.at("mlp_only_layers")
    each = Absent(value=1, meaning="1: every layer that mlp_only_layers does not name is routed", source=source)
    every = integer(step, absent=each)
    dense = indices(only, start=0, stop=max(num_layers, 1)) or ()
    if not text.ledger.is_sound(step, only):
        return ()
    return tuple(Mlp.DENSE if i in dense or (i + 1) % every else Mlp.ROUTED_MOE for i in range(num_layers))


def num_mtp(text: Section, *names: str, absent: Absent[int]) -> int:
    """MTP layers under any of `names`: 0 or 1."""
    spots = [text.at(name) for name in names]
    count = integer(*spots, minimum=0, absent=absent)
    if text.ledger.is_sound(spots[0]) and count > 1:
        text.ledger.fault(spots[0].path, found=count, expected="0 or 1 MTP layers")
    return count


def is_named(text: Section, *names: str) -> bool:
    """Whether any of `names` is there."""
    return any(text.has(name) for name in names)
