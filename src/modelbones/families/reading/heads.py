"""The widths of grouped-query attention."""

from __future__ import annotations

from collections.abc import Mapping

from modelbones.config import Absent, Section, integer
from modelbones.parts.attention import AttentionSizes

NO_DEFAULTS: Mapping[str, Absent[int]] = {}


def head_sizes(
    text: Section,
    hidden_size: int,
    *,
    source: str,
    ungrouped: bool = False,
    divided: bool = False,
    width: tuple[str, ...] = ("head_dim",),
    defaults: Mapping[str, Absent[int]] = NO_DEFAULTS,
) -> AttentionSizes:
    """Heads and their width; key-value heads divide the query heads.

    `ungrouped` and `divided` say that an absent `num_key_value_heads` means one for each query
    head, and an absent `head_dim` means `hidden_size` / `num_attention_heads`; `width` is what
    `head_dim` is called, `defaults` are sizes the published releases leave to the class.
    """
    ledger = text.ledger
    query, pair, widths = text.at("num_attention_heads"), text.at("num_key_value_heads"), [*map(text.at, width)]
    heads = integer(query, absent=defaults.get(query.key))
    same = Absent(value=heads, meaning=f"{heads}: one key-value head for each query head", source=source)
    kv_heads = integer(pair, absent=same if ungrouped else defaults.get(pair.key))
    if ledger.is_sound(query, pair) and heads % kv_heads:
        ledger.fault(pair.path, found=kv_heads, expected=f"a divisor of num_attention_heads, {heads}")
    share = defaults.get(width[0])
    if divided and not any(text.has(key) for key in width):
        hidden = text.at("hidden_size")
        if ledger.is_sound(query, hidden) and hidden_size % heads:
            expected = f"a multiple of num_attention_heads, {heads}, as no head_dim is named"
            ledger.fault(hidden.path, found=hidden_size, expected=expected)
        ratio = max(hidden_size // heads, 1)
        share = Absent(value=ratio, meaning=f"{ratio}: hidden_size / num_attention_heads", source=source)
    return AttentionSizes(
        hidden_size=hidden_size,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=integer(*widths, absent=share),
    )
