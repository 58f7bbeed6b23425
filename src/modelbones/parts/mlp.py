"""Feed-forward blocks: one gated MLP, or a router over many with shared ones beside."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelbones.buffers import TOKEN, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import KEPT_F32, matrix, vector
from modelbones.parts.part import Part
from modelbones.ranks import Axis, split
from modelbones.tensors import EXPERT, Permitted, Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedNames:
    """What the three matrices of a gated MLP are called."""

    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"


PROJ = GatedNames()
W123 = GatedNames(gate="w1", up="w3", down="w2")
TABLE = Permitted(dtypes=(DType.I64, DType.I32))


def gated_mlp(
    name: str, hidden_size: int, width: int, role: Role, axis: Axis, *, names: GatedNames = PROJ
) -> tuple[TensorPattern, ...]:
    """`down(act(gate(x)) * up(x))`: three matrices under `name`, cut along `width`."""
    rows, columns = split(axis, 0, width), split(axis, 1, width)
    return (
        matrix(f"{name}.{names.gate}", width, hidden_size, role, cut=rows),
        matrix(f"{name}.{names.up}", width, hidden_size, role, cut=rows),
        matrix(f"{name}.{names.down}", hidden_size, width, role, cut=columns),
    )


def dense_mlp(*, hidden_size: int, intermediate_size: int, bias: bool = False) -> Part:
    """One gated MLP for every token."""
    rows = split(Axis.FFN, 0, intermediate_size)
    biases = (
        *(vector(f"mlp.{name}.bias", intermediate_size, Role.DENSE_MLP, cut=rows) for name in (PROJ.gate, PROJ.up)),
        vector(f"mlp.{PROJ.down}.bias", hidden_size, Role.DENSE_MLP),
    )
    return Part(
        name="dense_mlp",
        tensors=(
            *gated_mlp("mlp", hidden_size, intermediate_size, Role.DENSE_MLP, Axis.FFN),
            *(biases if bias else ()),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeSizes:
    """The widths and counts of a routed block; `n_shared_experts` may be 0."""

    hidden_size: int
    moe_intermediate_size: int
    n_routed_experts: int
    n_shared_experts: int
    num_experts_per_tok: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeNames:
    """What a routed block's tensors are called, and whether its router has a selection bias.

    Attributes:
        block: The block itself, in its layer.
        bias: The router's selection bias, in the block; None when it has none.
        experts: The matrices of each routed expert.
        shared: Those of the shared experts.
    """

    block: str = "mlp"
    bias: str | None = "gate.e_score_correction_bias"
    experts: GatedNames = PROJ
    shared: GatedNames = PROJ


def routed_moe(sizes: MoeSizes, names: MoeNames = MoeNames()) -> Part:
    """A router, routed experts, and shared experts fused into one MLP."""
    hidden, block, num_routed = sizes.hidden_size, names.block, sizes.n_routed_experts
    experts = gated_mlp(
        f"{block}.experts.{EXPERT}",
        hidden,
        sizes.moe_intermediate_size,
        Role.EXPERTS,
        Axis.EXPERT_FFN,
        names=names.experts,
    )
    shared_width = sizes.moe_intermediate_size * sizes.n_shared_experts
    shared = gated_mlp(
        f"{block}.shared_experts", hidden, shared_width, Role.SHARED_EXPERTS, Axis.FFN, names=names.shared
    )
    bias = () if names.bias is None else (_selection_bias(f"{block}.{names.bias}", num_routed),)
    return Part(
        name="routed_moe",
        tensors=(
            matrix(f"{block}.gate", num_routed, hidden, Role.ROUTER),
            *bias,
            *(shared if sizes.n_shared_experts else ()),
            *(replace(pattern, num_experts=num_routed) for pattern in experts),
        ),
    )


def _selection_bias(name: str, n_routed_experts: int) -> TensorPattern:
    return vector(name, n_routed_experts, Role.ROUTER, permitted=KEPT_F32)


def hash_table(*, block: str, vocab_size: int, num_experts_per_tok: int) -> TensorPattern:
    """The experts of each token of the vocabulary, where a table and not the router chooses them.

    Source: deepseek-ai/DeepSeek-V4-Flash inference/model.py::Gate.
    """
    shape = (vocab_size, num_experts_per_tok)
    return TensorPattern(name=f"{block}.gate.tid2eid", shape=shape, role=Role.ROUTER, permitted=TABLE)


def routing_scratch(*, n_routed_experts: int, num_experts_per_tok: int) -> tuple[Buffer, ...]:
    """What one routing step writes for each token: fp32 logits, 4-byte top-k ids and weights.

    One area serves every layer in turn. Source: Metrale/metrale-inference-alpha model-arch
    glm5next_skeleton.rs::state_budget.
    """

    def scratch(name: str, width: int, dtype: DType) -> Buffer:
        return Buffer(
            name=name,
            term="moe_routing",
            shape=(width,),
            dtype=dtype,
            per=TOKEN,
            home=Home.SCRATCH,
            rewind=Rewind.NOTHING,
        )

    return (
        scratch("router.logits", n_routed_experts, DType.F32),
        scratch("router.ids", num_experts_per_tok, DType.I32),
        scratch("router.weights", num_experts_per_tok, DType.F32),
    )
