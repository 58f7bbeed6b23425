"""The head of a multi-token-prediction layer stored inline, at index `num_hidden_layers`."""

from __future__ import annotations

from dataclasses import replace

from modelbones.buffers import FIXED, Buffer, Home, Rewind
from modelbones.dtypes import DType
from modelbones.parts.linear import matrix, vector
from modelbones.parts.part import Part
from modelbones.ranks import Axis, split
from modelbones.tensors import Role, TensorPattern

PROPOSER = "proposer"
"""The budget term of what a draft proposer owns."""


def mtp_head(*, hidden_size: int, vocab_size: int, buffers: tuple[Buffer, ...] = ()) -> Part:
    """Joins the next token's embedding to the hidden state, and norms what leaves.

    `eh_proj` takes `[enorm(embedding), hnorm(hidden)]`. The layer's own copies of the
    embedding and of the head are optional: releases share the trunk's. Source:
    zai-org/GLM-5.3-Flash model.safetensors.index.json; vllm-project/vllm issue 57532.
    """
    role = Role.MTP_HEAD
    vocab = split(Axis.VOCAB, 0, vocab_size)
    copies = (
        matrix("embed_tokens", vocab_size, hidden_size, role, cut=vocab),
        matrix("shared_head.head", vocab_size, hidden_size, role, cut=vocab),
    )
    return Part(
        name="mtp_head",
        tensors=(
            matrix("eh_proj", hidden_size, 2 * hidden_size, role),
            vector("enorm.weight", hidden_size, role),
            vector("hnorm.weight", hidden_size, role),
            vector("shared_head.norm.weight", hidden_size, role),
            *(replace(copy, required=False) for copy in copies),
        ),
        buffers=buffers,
    )


def joined_head(*, hidden_size: int) -> Part:
    """The head of an MTP module apart, in Qwen's words: its own final norm stands beside it.

    `fc` takes `[norm(embedding), norm(hidden)]`; embedding and head are the trunk's. Source:
    vllm-project/vllm vllm/model_executor/models/qwen3_next_mtp.py; ModelTC/LightLLM
    lightllm/models/qwen3next_mtp.
    """
    norms = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
    return Part(
        name="mtp_head",
        tensors=(
            matrix("fc", hidden_size, 2 * hidden_size, Role.MTP_HEAD),
            *(vector(f"{norm}.weight", hidden_size, Role.MTP_HEAD) for norm in norms),
        ),
    )


def start_projections(*, hidden_size: int) -> Part:
    """What the first of several MTP layers has beside its block: `eh_proj` over two normed inputs."""
    role = Role.MTP_HEAD
    return Part(
        name="mtp_head",
        tensors=(
            matrix("eh_proj", hidden_size, 2 * hidden_size, role),
            vector("enorm.weight", hidden_size, role),
            vector("hnorm.weight", hidden_size, role),
        ),
    )


def end_norm(*, hidden_size: int) -> Part:
    """What the last of several MTP layers has beside its block."""
    return Part(name="mtp_end", tensors=(vector("final_layernorm.weight", hidden_size, Role.MTP_HEAD),))


def summed_head(*, hidden_size: int, leaving: tuple[TensorPattern, ...]) -> Part:
    """Joins the normed embedding and the normed hidden state, each projected, by a sum.

    `leaving` is what collapses the residual streams before the norm of its own; embedding and
    head are the trunk's. Source: deepseek-ai/DeepSeek-V4-Flash inference/model.py::MTPBlock.
    """
    role = Role.MTP_HEAD
    return Part(
        name="mtp_head",
        tensors=(
            *(matrix(name, hidden_size, hidden_size, role) for name in ("e_proj", "h_proj")),
            *(vector(f"{name}.weight", hidden_size, role) for name in ("enorm", "hnorm", "norm")),
            *leaving,
        ),
    )


def proposer_buffers(*, hidden_size: int, vocab_size: int) -> tuple[Buffer, ...]:
    """The five work buffers a draft proposer owns for each sequence.

    Source: Metrale/metrale-inference-alpha model-arch seq_state_reserve.rs::per_sequence_state_bytes.
    """

    def owned(name: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
        return Buffer(
            name=name,
            term=PROPOSER,
            shape=shape,
            dtype=dtype,
            per=FIXED,
            home=Home.OWNED,
            rewind=Rewind.NOTHING,
        )

    return (
        owned("proposer.concat", (2, hidden_size), DType.BF16),
        owned("proposer.x", (hidden_size,), DType.BF16),
        owned("proposer.logits", (vocab_size,), DType.BF16),
        owned("proposer.arg", (1,), DType.U32),
        owned("proposer.head_xchg", (16,), DType.U8),
    )
