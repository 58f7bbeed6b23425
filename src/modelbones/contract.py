"""The contract of a model: every tensor its config asks for, as folds over patterns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass

from modelbones.dtypes import DType
from modelbones.tensors import Group, Role, TensorPattern
from modelbones.units import whole_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much something is when it is stored unquantised.

    Attributes:
        tensors: Number of tensors.
        parameters: Elements in all of them.
        nbytes: Payload bytes.
    """

    tensors: int
    parameters: int
    nbytes: int

    def __add__(self, other: Size) -> Size:
        return Size(
            tensors=self.tensors + other.tensors,
            parameters=self.parameters + other.parameters,
            nbytes=self.nbytes + other.nbytes,
        )


NOTHING = Size(tensors=0, parameters=0, nbytes=0)


def size_of(pattern: TensorPattern, model_dtype: DType) -> Size:
    """What all tensors of `pattern` take in a `model_dtype` release."""
    parameters = pattern.numel * pattern.count
    bits = parameters * pattern.permitted.stored(model_dtype).bits
    return Size(tensors=pattern.count, parameters=parameters, nbytes=whole_bytes(bits))


def total_size(patterns: Iterable[TensorPattern], model_dtype: DType) -> Size:
    """What the required tensors of `patterns` take in a `model_dtype` release."""
    return sum((size_of(pattern, model_dtype) for pattern in patterns if pattern.required), NOTHING)


def sizes_by_role(patterns: Iterable[TensorPattern], model_dtype: DType) -> dict[tuple[Role, Group], Size]:
    """The required tensors' sizes by role and group, in contract order."""
    sizes: dict[tuple[Role, Group], Size] = {}
    for pattern in patterns:
        if pattern.required:
            key = pattern.role, pattern.group
            sizes[key] = sizes.get(key, NOTHING) + size_of(pattern, model_dtype)
    return sizes


def structural_names(patterns: Iterable[TensorPattern]) -> set[str]:
    """Names of the required tensors that are neither MLP nor tower."""
    return {name for pattern in patterns if pattern.required and pattern.is_structural for name in pattern.names()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralAccounting:
    """A checkpoint's names against the structural contract.

    Source: Metrale/metrale-inference-alpha model-arch glm5next_skeleton/budget.rs::StructuralAccounting.

    Attributes:
        required: Structural names the contract asks for.
        bound: How many of them the checkpoint has.
        missing: Those it does not have, sorted.
        unexpected: Names that are neither structural nor deferred, sorted.
        deferred: How many names belong to an MLP or a vision tower.
    """

    required: int
    bound: int
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    deferred: int

    def is_complete(self) -> bool:
        """Whether everything structural is there and nothing else is."""
        return not self.missing and not self.unexpected and self.bound == self.required


def account(required: set[str], available: Collection[str]) -> StructuralAccounting:
    """Account `required` structural names against all names of a checkpoint, as the seed does.

    Names are taken raw: one that contains ".mlp." or starts with "model.visual." or
    "model.vision" is deferred, any other that is not required is unexpected.
    """
    names = available if isinstance(available, Set) else set(available)
    missing = sorted(name for name in required if name not in names)
    unexpected, deferred = [], 0
    for name in names:
        if name in required:
            continue
        if is_deferred(name):
            deferred += 1
        else:
            unexpected.append(name)
    return StructuralAccounting(
        required=len(required),
        bound=len(required) - len(missing),
        missing=tuple(missing),
        unexpected=tuple(sorted(unexpected)),
        deferred=deferred,
    )


def is_deferred(name: str) -> bool:
    """Whether the structural accounting leaves a name to others: an MLP's or the tower's."""
    return ".mlp." in name or name.startswith(("model.visual.", "model.vision"))
