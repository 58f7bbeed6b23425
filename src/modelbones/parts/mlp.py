"""Feed-forward blocks: one gated MLP, or a router over many with shared ones beside."""

from __future__ import annotations

from dataclasses import replace

from modelbones.buffers import TOKEN, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import KEPT_F32, matrix, vector
from modelbones.parts.part import Part
from modelbones.ranks import Axis, split
from modelbones.tensors import EXPERT, Role, TensorPattern


def gated_mlp(name: str, hidden_size: int, width: int, role: Role, axis: Axis) -> tuple[TensorPattern, ...]:
    """`down(act(gate(x)) * up(x))`: three matrices under `name`, cut along `width`."""
    rows, columns = split(axis, 0, width), split(axis, 1, width)
    return (
        matrix(f"{name}.gate_proj", width, hidden_size, role, cut=rows),
        matrix(f"{name}.up_proj", width, hidden_size, role, cut=rows),
        matrix(f"{name}.down_proj", hidden_size, width, role, cut=columns),
    )


def dense_mlp(*, hidden_size: int, intermediate_size: int) -> Part:
    """One gated MLP for every token."""
    return Part(
        name="dense_mlp",
        tensors=gated_mlp("mlp", hidden_size, intermediate_size, Role.DENSE_MLP, Axis.FFN),
    )


def routed_moe(*, hidden_size: int, moe_intermediate_size: int, n_routed_experts: int, n_shared_experts: int) -> Part:
    """A router with a selection bias, routed experts, and shared experts fused into one MLP."""
    experts = gated_mlp(f"mlp.experts.{EXPERT}", hidden_size, moe_intermediate_size, Role.EXPERTS, Axis.EXPERT_FFN)
    shared_width = moe_intermediate_size * n_shared_experts
    shared = gated_mlp("mlp.shared_experts", hidden_size, shared_width, Role.SHARED_EXPERTS, Axis.FFN)
    return Part(
        name="routed_moe",
        tensors=(
            matrix("mlp.gate", n_routed_experts, hidden_size, Role.ROUTER),
            vector("mlp.gate.e_score_correction_bias", n_routed_experts, Role.ROUTER, permitted=KEPT_F32),
            *(shared if n_shared_experts else ()),
            *(replace(pattern, num_experts=n_routed_experts) for pattern in experts),
        ),
    )


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
