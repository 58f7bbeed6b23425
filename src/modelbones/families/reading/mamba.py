"""The widths of Mamba-2."""

from __future__ import annotations

from modelbones.config import Absent, Section, flag, integer
from modelbones.parts.mamba2 import Mamba2Sizes


def mamba2_sizes(text: Section, hidden_size: int, *, source: str) -> Mamba2Sizes:
    """Every width is required; heads come in whole groups that share their input and output maps.

    The published spelling of each key first, then transformers' older one.
    """
    heads, groups = text.at("mamba_num_heads"), text.at("n_groups")
    no_bias = Absent(value=False, meaning="false: no projection has one", source=source)
    sizes = Mamba2Sizes(
        hidden_size=hidden_size,
        mamba_num_heads=integer(heads),
        mamba_head_dim=integer(text.at("mamba_head_dim")),
        n_groups=integer(groups, text.at("mamba_n_groups")),
        ssm_state_size=integer(text.at("ssm_state_size")),
        conv_kernel=integer(text.at("conv_kernel"), text.at("mamba_d_conv")),
        use_conv_bias=flag(text.at("use_conv_bias"), text.at("mamba_conv_bias")),
        use_bias=flag(text.at("use_bias"), absent=no_bias),
    )
    if text.ledger.is_sound(heads, groups) and sizes.mamba_num_heads % sizes.n_groups:
        expected = f"a multiple of n_groups, {sizes.n_groups}"
        text.ledger.fault(heads.path, found=sizes.mamba_num_heads, expected=expected)
    return sizes
