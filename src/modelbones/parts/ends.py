"""What stands before the first layer, after the last, and around every sublayer."""

from __future__ import annotations

from dataclasses import replace

from modelbones.parts.linear import matrix, vector
from modelbones.parts.part import Part
from modelbones.ranks import Axis, split
from modelbones.tensors import Role, TensorPattern

INPUT_NORM = "input_layernorm.weight"
POST_ATTENTION_NORM = "post_attention_layernorm.weight"
PRE_FEEDFORWARD_NORM = "pre_feedforward_layernorm.weight"
POST_FEEDFORWARD_NORM = "post_feedforward_layernorm.weight"
SINGLE_NORM = "norm.weight"


def pre_norms(*, hidden_size: int) -> Part:
    """The RMSNorm in front of each of a layer's two sublayers."""
    return Part(
        name="pre_norms",
        tensors=tuple(vector(name, hidden_size, Role.LAYER_NORM) for name in (INPUT_NORM, POST_ATTENTION_NORM)),
    )


def sandwich_norms(*, hidden_size: int) -> Part:
    """An RMSNorm in front of each sublayer and another behind it."""
    names = (INPUT_NORM, POST_ATTENTION_NORM, PRE_FEEDFORWARD_NORM, POST_FEEDFORWARD_NORM)
    return Part(name="sandwich_norms", tensors=tuple(vector(name, hidden_size, Role.LAYER_NORM) for name in names))


def single_norm(*, hidden_size: int) -> Part:
    """The RMSNorm in front of a single-site layer's one sublayer."""
    return Part(name="single_norm", tensors=(vector(SINGLE_NORM, hidden_size, Role.LAYER_NORM),))


def embeddings(prefix: str, *, vocab_size: int, hidden_size: int, name: str = "embed_tokens") -> TensorPattern:
    """The token embedding, `[vocab_size, hidden_size]`."""
    rows = split(Axis.VOCAB, 0, vocab_size)
    return matrix(f"{prefix}{name}", vocab_size, hidden_size, Role.EMBEDDINGS, cut=rows)


def final_norm(prefix: str, *, hidden_size: int, name: str = "norm") -> TensorPattern:
    """The RMSNorm after the last layer."""
    return vector(f"{prefix}{name}.weight", hidden_size, Role.FINAL_NORM)


def lm_head(*, vocab_size: int, hidden_size: int, name: str = "lm_head") -> TensorPattern:
    """The output head, `[vocab_size, hidden_size]`."""
    rows = split(Axis.VOCAB, 0, vocab_size)
    return matrix(name, vocab_size, hidden_size, Role.LM_HEAD, cut=rows)


def outer(
    prefix: str, *, vocab_size: int, hidden_size: int, tied: bool, head: str = "lm_head", tied_copy: bool = False
) -> tuple[TensorPattern, ...]:
    """The tensors of no layer: embedding, final norm, and the head where it is a tensor of its own.

    A tied head is the embedding; with `tied_copy` a release may store it all the same.
    """
    own = lm_head(vocab_size=vocab_size, hidden_size=hidden_size, name=head)
    return (
        embeddings(prefix, vocab_size=vocab_size, hidden_size=hidden_size),
        final_norm(prefix, hidden_size=hidden_size),
        *((replace(own, required=not tied),) if tied_copy or not tied else ()),
    )
