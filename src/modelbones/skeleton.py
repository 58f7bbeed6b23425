"""`Skeleton`: a model's layers, wiring, tensors and state as data. It executes nothing.

Source: Metrale/metrale-inference-alpha model-arch glm5next_skeleton.rs, whose names this keeps.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from modelbones.budget import StateBudget
from modelbones.buffers import Buffer
from modelbones.contract import StructuralAccounting, account, structural_names
from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.parts.part import KV_KINDS, Part, StateKind
from modelbones.tensors import LAYER, Group, TensorPattern


class Mixer(Enum):
    """What mixes tokens in a layer."""

    KDA = "kda"
    """Kimi Delta Attention: recurrent state, no KV cache."""
    DSA = "dsa"
    """Sparse latent attention behind a top-k indexer; attends a paged KV cache."""
    MLA = "mla"
    """Latent attention over all earlier tokens; attends a paged cache of latent rows."""
    ATTENTION = "attention"
    """Attention over all earlier tokens, query heads in groups that share a key and a value."""
    WINDOW = "window"
    """The same over the last `sliding_window` tokens only."""
    CSA = "csa"
    """Attention over a window and the pools of older tokens that an indexer selects."""
    HCA = "hca"
    """Attention over a window and over every pool of older tokens."""
    GDN = "gdn"
    """Gated DeltaNet: recurrent state, no KV cache."""
    MAMBA2 = "mamba2"
    """Selective state space of the Mamba-2 kind: recurrent state, no KV cache."""
    NONE = "none"
    """A single-site layer that holds an MLP and mixes no tokens."""


class Mlp(Enum):
    """What transforms each token by itself in a layer."""

    DENSE = "dense"
    ROUTED_MOE = "routed_moe"
    NONE = "none"
    """A single-site layer that holds a mixer only."""


class Site(Enum):
    """One of a layer's two residual sites."""

    ATTN = "attn"
    FFN = "ffn"


class Step(Enum):
    """The kinds of `ResidualStep`."""

    SAVE_RESIDUAL = "save_residual"
    """Keep what the site starts from, for its end."""
    HC_PRE = "hc_pre"
    """Collapse the residual streams to one sequence."""
    NORM = "norm"
    """RMSNorm, named by its weight."""
    MIXER = "mixer"
    MLP = "mlp"
    HC_POST = "hc_post"
    """Mix the sublayer's output back into every stream."""


@dataclass(frozen=True, slots=True)
class ResidualStep:
    """One step of a layer's residual path.

    Attributes:
        kind: What happens.
        site: Where, for a hyper-connection step.
        weight: Leaf name of the weight, for a norm.
    """

    kind: Step
    site: Site | None = None
    weight: str | None = None


class Final(Enum):
    """The kinds of `FinalStep`."""

    HYPER_HEAD_MEAN = "hyper_head_mean"
    """Unweighted mean over the residual streams; it has no parameters."""
    HYPER_HEAD = "hyper_head"
    """Weighted sum over the residual streams, the weights learned; named by its matrix."""
    NORM = "norm"
    LM_HEAD = "lm_head"


@dataclass(frozen=True, slots=True)
class FinalStep:
    """One step after the last layer; `weight` is the full tensor name of a norm or of a learned sum."""

    kind: Final
    weight: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One decoder layer (`SkeletonLayer` in the seeds).

    Attributes:
        index: Its index in checkpoint names.
        mixer: What mixes tokens.
        mlp: What transforms each token.
        hyper_connection: Whether its residual path is a hyper-connection.
        is_mtp: Whether it is the MTP layer, which is no part of the text stack.
        parts: Its building blocks, in order.
        steps: Its residual path, in execution order.
        indexer_from: For sparse attention, the layer whose selection it uses: its own
            index when it runs an indexer; None for other mixers.
        stem: What stands before its tensors' names when that is not the model's own
            "layers.N.": an MTP module apart ("mtp."), whose parts name their own layers.
    """

    index: int
    mixer: Mixer
    mlp: Mlp
    hyper_connection: bool
    is_mtp: bool
    parts: tuple[Part, ...]
    steps: tuple[ResidualStep, ...]
    indexer_from: int | None = None
    stem: str = ""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The state this layer keeps for one sequence."""
        return tuple(buffer for part in self.parts for buffer in part.buffers)

    @property
    def states(self) -> tuple[StateKind, ...]:
        """The kinds of state it keeps, usually one."""
        return tuple(part.state for part in self.parts if part.state is not None)


SkeletonLayer = Layer


@dataclass(frozen=True, kw_only=True)
class Skeleton:
    """A model as data; everything about tensors and state is a fold over this.

    Attributes:
        model_type: The config's own top-level word.
        hidden_size: Width of the residual stream.
        dtype: The type the config says matrices are stored in.
        prefix: What stands before "layers.N." in the published names.
        layers: The text stack, indices 0 to `num_hidden_layers` - 1.
        mtp: The MTP layer at index `num_hidden_layers`, held apart from `layers`.
        outer: Tensors of no layer: embedding, final norm, head.
        tower: Tensors of the vision tower; empty when the config declares none.
        work: Activations and scratch of a step: named, never counted as state.
        final: What runs after the last text layer.
        open_prefixes: Prefixes of modules whose tensors are listed and counted, but not
            judged, with the group each belongs to.
        optional_groups: Groups a release may leave out whole: its config does not say
            whether they are stored.
    """

    model_type: str
    hidden_size: int
    dtype: DType
    prefix: str
    layers: tuple[Layer, ...]
    mtp: Layer | None
    outer: tuple[TensorPattern, ...]
    tower: tuple[TensorPattern, ...]
    work: tuple[Buffer, ...]
    final: tuple[FinalStep, ...]
    open_prefixes: tuple[tuple[str, Group], ...] = ()
    optional_groups: frozenset[Group] = frozenset()

    def all_layers(self) -> tuple[Layer, ...]:
        """The text stack and then the MTP layer, in checkpoint index order."""
        return self.layers if self.mtp is None else (*self.layers, self.mtp)

    @cached_property
    def patterns(self) -> tuple[TensorPattern, ...]:
        """Every tensor of the model: trunk, MTP layer, towers."""
        mtp = () if self.mtp is None else self.layer_patterns((self.mtp,), Group.MTP)
        return (*self.outer, *self.layer_patterns(self.layers, Group.TRUNK), *mtp, *self.tower)

    def layer_patterns(self, layers: Collection[Layer], group: Group) -> tuple[TensorPattern, ...]:
        """The tensors of `layers`, one pattern a kind over all layers that share a part."""
        users: dict[tuple[int, str], tuple[Part, list[int]]] = {}
        for layer in layers:
            for part in layer.parts:
                users.setdefault((id(part), layer.stem), (part, []))[1].append(layer.index)
        inline = f"{self.prefix}layers.{LAYER}."
        return tuple(
            pattern.placed(stem or inline, layers=() if stem else tuple(indices), group=group)
            for (_, stem), (part, indices) in users.items()
            for pattern in part.tensors
        )

    def structural_tensors(self, layer: Layer) -> tuple[str, ...]:
        """Full names of `layer`'s required tensors that are no MLP's."""
        return tuple(
            name
            for pattern in self.layer_patterns((layer,), Group.TRUNK)
            if pattern.is_structural and pattern.required
            for name in pattern.names()
        )

    def structural_tensor_set(self) -> set[str]:
        """Every structural tensor of the model, those of no layer included."""
        return structural_names(self.patterns)

    def residual_plan(self, layer: Layer) -> tuple[ResidualStep, ...]:
        """The residual path of `layer`, in execution order."""
        return layer.steps

    def final_plan(self) -> tuple[FinalStep, ...]:
        """What runs after the last text layer."""
        return self.final

    def state_plan(self) -> dict[int, StateKind]:
        """The kind of state of every layer that keeps one, the MTP layer included.

        A layer that keeps several appears with its first; `Layer.states` has them all.
        """
        return {layer.index: layer.states[0] for layer in self.all_layers() if layer.states}

    def kda_state_layers(self) -> tuple[int, ...]:
        """Layers whose recurrent state is carried between steps."""
        return self._layers_that_keep({StateKind.KDA_RECURRENT})

    def kv_cache_layers(self) -> tuple[int, ...]:
        """Layers that consume paged KV blocks, the MTP layer included."""
        return self._layers_that_keep(KV_KINDS)

    def _layers_that_keep(self, kinds: Collection[StateKind]) -> tuple[int, ...]:
        return tuple(layer.index for layer in self.all_layers() if any(kind in kinds for kind in layer.states))

    def budget(self, num_spec: int = 0) -> StateBudget:
        """What one sequence keeps while `num_spec` speculative tokens are in flight.

        The text stack only: what the MTP layer and its proposer keep is the reserve's.
        """
        if num_spec < 0:
            raise UsageError(f"num_spec: found {num_spec}; expected 0 or more; name the tokens drafted a step")
        held = (*(buffer for layer in self.layers for buffer in layer.buffers), *self.work)
        return StateBudget.fold(buffer.drafting(num_spec) for buffer in held)

    def account(self, names: Collection[str]) -> StructuralAccounting:
        """Account the structural contract against all names of a checkpoint, raw.

        Beside what the seed defers by its spelling, the names of this model's own MLPs and open
        modules are deferred however they are spelled.
        """
        result = account(self.structural_tensor_set(), names)
        if not result.unexpected:
            return result
        towers = tuple(prefix for prefix, _ in self.open_prefixes)
        others = {name for pattern in self.patterns if not pattern.is_structural for name in pattern.names()}
        left = tuple(n for n in result.unexpected if n not in others and not (towers and n.startswith(towers)))
        deferred = result.deferred + len(result.unexpected) - len(left)
        return replace(result, unexpected=left, deferred=deferred)
