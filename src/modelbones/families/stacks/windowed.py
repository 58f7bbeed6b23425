"""The two attention blocks of a stack that has windows on some layers."""

from __future__ import annotations

from modelbones.families.stacks.decoder import Blocks
from modelbones.parts.attention import AttentionForm, AttentionSizes, attention
from modelbones.skeleton import Mixer


def full_and_window(sizes: AttentionSizes, form: AttentionForm, window_tokens: int | None) -> Blocks:
    """Attention over all tokens and, where there is a window, over the last ones: same tensors, other state."""
    full: Blocks = {Mixer.ATTENTION: attention(sizes, form)}
    if window_tokens is None:
        return full
    return {**full, Mixer.WINDOW: attention(sizes, form, window_tokens=window_tokens)}
