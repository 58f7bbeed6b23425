"""`TensorPattern`: the checkpoint tensors of one kind, over ranges of layers and experts.

A release has a hundred patterns and a hundred thousand tensors; there is never one
object a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from modelbones.dtypes import DType
from modelbones.ranks import Split

LAYER = "{layer}"
EXPERT = "{expert}"


class Group(Enum):
    """The part of a release a tensor belongs to; each gets its own verdict."""

    TRUNK = "trunk"
    MTP = "mtp"
    VISION = "vision"


class Role(Enum):
    """What a tensor is for; sizes are reported by role."""

    EMBEDDINGS = "embeddings"
    FINAL_NORM = "final_norm"
    LM_HEAD = "lm_head"
    LAYER_NORM = "layer_norm"
    KDA = "kda"
    DSA = "dsa"
    MLA = "mla"
    COMPRESSED = "compressed_attention"
    ATTENTION = "attention"
    GDN = "gdn"
    MAMBA2 = "mamba2"
    HYPER_CONNECTION = "hyper_connection"
    DENSE_MLP = "dense_mlp"
    ROUTER = "router"
    SHARED_EXPERTS = "shared_experts"
    EXPERTS = "experts"
    MTP_HEAD = "mtp_head"
    VISION = "vision"


NOT_STRUCTURAL = frozenset({Role.DENSE_MLP, Role.ROUTER, Role.SHARED_EXPERTS, Role.EXPERTS, Role.VISION})
"""Roles the structural accounting defers: every MLP and every tower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """The element types an unquantised tensor may be stored in.

    Attributes:
        dtypes: Those without remark; the first is what a release writes when the
            config's own dtype is not among them.
        risky: Those that load but harm; each is a warning that says `risk`.
        risk: What goes wrong with a risky type.
    """

    dtypes: tuple[DType, ...]
    risky: tuple[DType, ...] = ()
    risk: str = ""

    def stored(self, model_dtype: DType) -> DType:
        """The type an unquantised release of a `model_dtype` model stores."""
        return model_dtype if model_dtype in self.dtypes else self.dtypes[0]


FLOAT = Permitted(dtypes=(DType.BF16, DType.F16, DType.F32))
"""Matrices, norms and convolutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPattern:
    """All tensors of one kind.

    Attributes:
        name: Name with `{layer}` and `{expert}` where those indices stand.
        shape: Shape of each tensor, `[rows, columns]` for a matrix.
        role: What it is for.
        permitted: The element types it may have when it is not quantised.
        split: How ranks may share each tensor; empty when every rank holds it whole.
        layers: Layer (or tower block) indices it repeats over; empty when it does not.
        num_experts: Experts it repeats over; 0 when it does not.
        group: The part of the release it belongs to.
        required: False when a release may leave it out.
        stands_for: The contract's names this stored tensor holds, when a dialect spells them
            so; None when it is one of the contract's own, empty when another one counts.
        stacked: Experts stacked in each tensor; 0 when none are.
    """

    name: str
    shape: tuple[int, ...]
    role: Role
    permitted: Permitted = FLOAT
    split: tuple[Split, ...] = ()
    layers: tuple[int, ...] = ()
    num_experts: int = 0
    group: Group = Group.TRUNK
    required: bool = True
    stands_for: tuple[str, ...] | None = None
    stacked: int = 0

    @property
    def is_structural(self) -> bool:
        """Whether the structural accounting binds it (no MLP, no tower)."""
        return self.role not in NOT_STRUCTURAL

    @property
    def count(self) -> int:
        """How many tensors it stands for."""
        return max(1, len(self.layers)) * max(1, self.num_experts)

    @property
    def numel(self) -> int:
        """Elements of one of its tensors."""
        return prod(self.shape)

    def placed(self, prefix: str, *, layers: tuple[int, ...] = (), group: Group = Group.TRUNK) -> TensorPattern:
        """This pattern under `prefix`, for `layers`, in `group`."""
        return replace(self, name=prefix + self.name, layers=layers, group=group)

    @property
    def is_packable(self) -> bool:
        """Whether some quantiser may pack it: a matrix with a weight's name, or a stack of experts."""
        is_stack = self.role is Role.EXPERTS and len(self.shape) == 3
        return is_stack or (self.name.endswith(".weight") and len(self.shape) >= 2)

    @property
    def is_linear(self) -> bool:
        """Whether it is the weight of a linear layer, which a quantisation config speaks of."""
        is_matrix = len(self.shape) == 2 or (len(self.shape) == 3 and self.role is Role.EXPERTS)
        return self.is_packable and is_matrix and self.role is not Role.EMBEDDINGS

    @property
    def logical_each(self) -> int:
        """How many tensors of the contract one stored tensor stands for."""
        return 1 if self.stands_for is None else len(self.stands_for) * max(1, self.stacked)

    def logical_names(self, layer: int | None) -> list[str]:
        """The contract's names for what it stores in one layer, experts left out."""
        templates = (self.name,) if self.stands_for is None else self.stands_for
        return [name if layer is None else name.replace(LAYER, str(layer)) for name in templates]

    def names(self) -> Iterator[str]:
        """Every name it stands for, layer by layer and expert by expert."""
        for layer in self.layers or (None,):
            yield from self.names_in(layer)

    def names_in(self, layer: int | None) -> list[str]:
        """The names it stands for in one layer, expert by expert; `layer` is None outside layers."""
        stem = self.name if layer is None else self.name.replace(LAYER, str(layer))
        if not self.num_experts:
            return [stem]
        head, _, tail = stem.partition(EXPERT)
        return [f"{head}{expert}{tail}" for expert in range(self.num_experts)]
