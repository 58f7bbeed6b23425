"""Routed blocks of other layouts: experts stacked in one tensor, a gated shared expert, experts without a gate."""

from __future__ import annotations

from dataclasses import replace

from modelbones.parts.linear import KEPT_F32, matrix, vector
from modelbones.parts.mlp import gated_mlp
from modelbones.ranks import Axis, Split
from modelbones.tensors import EXPERT, Role, TensorPattern

EXPERTS = Role.EXPERTS


def split_experts(at: str, *, hidden_size: int, width: int, num_experts: int) -> tuple[TensorPattern, ...]:
    """Three matrices an expert, each a tensor of its own under `at.experts.N`."""
    one = gated_mlp(f"{at}.experts.{EXPERT}", hidden_size, width, EXPERTS, Axis.EXPERT_FFN)
    return tuple(replace(pattern, num_experts=num_experts) for pattern in one)


def stacked_experts(at: str, *, hidden_size: int, width: int, num_experts: int) -> tuple[TensorPattern, ...]:
    """All experts in two tensors without `.weight`: `[experts, gate | up, hidden]` and `[experts, hidden, width]`."""
    return (
        _stacked(f"{at}.experts.gate_up_proj", (num_experts, 2 * width, hidden_size), dim=1, members=2),
        _stacked(f"{at}.experts.down_proj", (num_experts, hidden_size, width), dim=2),
    )


def transposed_experts(at: str, *, hidden_size: int, width: int, num_experts: int) -> tuple[TensorPattern, ...]:
    """The same with inputs before outputs, gate and up rows in turn, and biases.

    `[experts, hidden, 2 x width]`, `[experts, width, hidden]` and a bias for each. Source:
    transformers 5.23 modeling_gpt_oss.py::GptOssExperts.
    """
    # A gate row and its up row stand side by side, so a rank's share is whole pairs.
    pairs = Split(axis=Axis.EXPERT_FFN, dim=2, blocks=((2 * width, width),))
    bias_pairs = Split(axis=Axis.EXPERT_FFN, dim=1, blocks=((2 * width, width),))
    gate_up = _stacked(f"{at}.experts.gate_up_proj", (num_experts, hidden_size, 2 * width))
    gate_up_bias = _stacked(f"{at}.experts.gate_up_proj_bias", (num_experts, 2 * width))
    return (
        replace(gate_up, split=(*gate_up.split, pairs)),
        replace(gate_up_bias, split=(*gate_up_bias.split, bias_pairs)),
        _stacked(f"{at}.experts.down_proj", (num_experts, width, hidden_size), dim=1),
        _stacked(f"{at}.experts.down_proj_bias", (num_experts, hidden_size)),
    )


def _stacked(name: str, shape: tuple[int, ...], *, dim: int = 0, members: int = 1) -> TensorPattern:
    """One tensor of all experts, cut by whole experts and, where `dim` is given, along it."""
    by_expert = Split(axis=Axis.EXPERTS, dim=0, blocks=((shape[0], shape[0]),))
    width = shape[dim] // members
    inside = Split(axis=Axis.EXPERT_FFN, dim=dim, blocks=((width, width),) * members)
    return TensorPattern(name=name, shape=shape, role=EXPERTS, split=(by_expert, inside) if dim else (by_expert,))


def router(at: str, *, hidden_size: int, num_experts: int, selection_bias: bool = False) -> tuple[TensorPattern, ...]:
    """`at.gate`, a row an expert, and the bias added to its scores only to select."""
    bias = vector(f"{at}.gate.e_score_correction_bias", num_experts, Role.ROUTER, permitted=KEPT_F32)
    return matrix(f"{at}.gate", num_experts, hidden_size, Role.ROUTER), *((bias,) if selection_bias else ())


def biased_router(at: str, *, hidden_size: int, num_experts: int) -> tuple[TensorPattern, ...]:
    """`at.router`, a linear layer with a bias: a row an expert."""
    return (
        matrix(f"{at}.router", num_experts, hidden_size, Role.ROUTER),
        vector(f"{at}.router.bias", num_experts, Role.ROUTER),
    )


def gated_shared_expert(at: str, *, hidden_size: int, width: int) -> tuple[TensorPattern, ...]:
    """One expert every token passes, its output scaled by a gate of one row."""
    return (
        *gated_mlp(f"{at}.shared_expert", hidden_size, width, Role.SHARED_EXPERTS, Axis.FFN),
        matrix(f"{at}.shared_expert_gate", 1, hidden_size, Role.SHARED_EXPERTS),
    )


def ungated_mlp(
    at: str, hidden_size: int, width: int, role: Role, axis: Axis, *, bias: bool = False
) -> tuple[TensorPattern, ...]:
    """`down(act(up(x)))`: two matrices under `at`, cut along `width`."""
    rows, columns = (Split(axis=axis, dim=dim, blocks=((width, width),)) for dim in (0, 1))
    biases = (
        vector(f"{at}.up_proj.bias", width, role, cut=(rows,)),
        vector(f"{at}.down_proj.bias", hidden_size, role),
    )
    return (
        matrix(f"{at}.up_proj", width, hidden_size, role, cut=(rows,)),
        matrix(f"{at}.down_proj", hidden_size, width, role, cut=(columns,)),
        *(biases if bias else ()),
    )


def ungated_experts(at: str, *, hidden_size: int, width: int, num_experts: int) -> tuple[TensorPattern, ...]:
    """Two matrices an expert, each a tensor of its own under `at.experts.N`."""
    one = ungated_mlp(f"{at}.experts.{EXPERT}", hidden_size, width, EXPERTS, Axis.EXPERT_FFN)
    return tuple(replace(pattern, num_experts=num_experts) for pattern in one)


def latent_projections(at: str, *, hidden_size: int, latent_size: int, bias: bool = False) -> tuple[TensorPattern, ...]:
    """Into the width the routed experts work at, and back; every rank holds them whole."""
    sizes = (("fc1_latent_proj", latent_size, hidden_size), ("fc2_latent_proj", hidden_size, latent_size))
    return tuple(
        pattern
        for name, rows, columns in sizes
        for pattern in (
            matrix(f"{at}.{name}", rows, columns, EXPERTS),
            *((vector(f"{at}.{name}.bias", rows, EXPERTS),) if bias else ()),
        )
    )
