"""Mamba-2: a selective state space over heads, whose input and output maps groups of heads share."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import FIXED, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import in_heads, matrix, out_heads, vector
from modelbones.parts.part import Part, StateKind
from modelbones.ranks import Axis, Split, split
from modelbones.tensors import Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2Sizes:
    """The widths of a Mamba-2 block, in the words of its config.

    `mamba_num_heads` is a multiple of `n_groups`.
    """

    hidden_size: int
    mamba_num_heads: int
    mamba_head_dim: int
    n_groups: int
    ssm_state_size: int
    conv_kernel: int
    use_conv_bias: bool = True
    use_bias: bool = False

    @property
    def width(self) -> int:
        """Elements of all heads."""
        return self.mamba_num_heads * self.mamba_head_dim

    @property
    def conv_blocks(self) -> tuple[tuple[int, int], ...]:
        """x by heads, then B and C by groups: what the convolution runs over."""
        group = (self.n_groups * self.ssm_state_size, self.n_groups)
        return (self.width, self.mamba_num_heads), group, group

    @property
    def conv_width(self) -> int:
        """Channels of the convolution."""
        return sum(size for size, _ in self.conv_blocks)


def mamba2(sizes: Mamba2Sizes, *, at: str = "mixer") -> Part:
    """A Mamba-2 block; state-space and conv state, fixed in a sequence's length.

    `in_proj` holds gate, x, B, C and the step sizes, in this order. Fewer groups than ranks are
    held whole, one a rank. Source: transformers 5.23 modeling_nemotron_h.py::NemotronHMamba2Mixer.
    """
    heads, width, role = sizes.mamba_num_heads, sizes.width, Role.MAMBA2
    whole_heads = out_heads(heads, heads)
    inputs = ((width, heads), *sizes.conv_blocks, (heads, heads))
    channels = (Split(axis=Axis.HEADS, dim=0, blocks=sizes.conv_blocks),)
    in_width = width + sizes.conv_width + heads
    conv = (sizes.conv_width, 1, sizes.conv_kernel)
    biases = (
        vector(f"{at}.in_proj.bias", in_width, role, cut=(Split(axis=Axis.HEADS, dim=0, blocks=inputs),)),
        vector(f"{at}.out_proj.bias", sizes.hidden_size, role),
    )
    return Part(
        name="mamba2",
        tensors=(
            matrix(
                f"{at}.in_proj", in_width, sizes.hidden_size, role, cut=(Split(axis=Axis.HEADS, dim=0, blocks=inputs),)
            ),
            TensorPattern(name=f"{at}.conv1d.weight", shape=conv, role=role, split=channels),
            *((vector(f"{at}.conv1d.bias", sizes.conv_width, role, cut=channels),) if sizes.use_conv_bias else ()),
            *(vector(f"{at}.{name}", heads, role, cut=whole_heads) for name in ("dt_bias", "A_log", "D")),
            vector(f"{at}.norm.weight", width, role, cut=out_heads(width, heads)),
            matrix(f"{at}.out_proj", sizes.hidden_size, width, role, cut=in_heads(width, heads)),
            *(biases if sizes.use_bias else ()),
        ),
        buffers=_state(sizes),
        state=StateKind.SSM,
    )


def _state(sizes: Mamba2Sizes) -> tuple[Buffer, ...]:
    """`[heads, head dim, state size]` fp32, and the conv window `[kernel - 1, x | B | C]` bf16."""
    heads = sizes.mamba_num_heads

    def slot(name: str, shape: tuple[int, ...], dtype: DType, cut: tuple[Split, ...], draft_rows: int = 0) -> Buffer:
        return Buffer(
            name=name,
            term=name,
            shape=shape,
            dtype=dtype,
            per=FIXED,
            home=Home.SLOT,
            rewind=Rewind.SNAPSHOT,
            split=cut,
            draft_rows=draft_rows,
        )

    window = (sizes.conv_kernel - 1, sizes.conv_width)
    by_heads = (Split(axis=Axis.HEADS, dim=1, blocks=sizes.conv_blocks),)
    return (
        slot("ssm", (heads, sizes.mamba_head_dim, sizes.ssm_state_size), DType.F32, split(Axis.HEADS, 0, heads)),
        slot("ssm_conv", window, DType.BF16, by_heads, draft_rows=1),
    )
