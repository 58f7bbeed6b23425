"""What a synthetic checkpoint stores: names, types, shapes, in contract order and in shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from modelbones.dtypes import DType
from modelbones.errors import UsageError
from modelbones.quant.form import ShapeRule, base_of, stored_name
from modelbones.quant.recipe import Recipe
from modelbones.skeleton import Skeleton
from modelbones.tensors import TensorPattern
from modelbones.units import GIB, ceil_div, whole_bytes

MOST_SHARD_BYTES = 5 * GIB


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor to write."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return whole_bytes(prod(self.shape) * self.dtype.bits)


def tensors(patterns: Iterable[TensorPattern], model_dtype: DType, recipe: Recipe | None) -> Iterator[Tensor]:
    """Every required tensor of `patterns`, packed as `recipe` says."""
    for pattern in patterns:
        if pattern.required:
            for name in pattern.names():
                yield from stored_as(name, pattern, model_dtype, recipe)


def stored_as(name: str, pattern: TensorPattern, model_dtype: DType, recipe: Recipe | None) -> Iterator[Tensor]:
    """What one tensor of `pattern`, called `name`, is stored as: itself, or packed with its sidecars."""
    if recipe is None or not recipe.packs(pattern):
        yield Tensor(name, pattern.permitted.stored(model_dtype), pattern.shape)
        return
    form = recipe.form_of(pattern)
    base = base_of(name)
    yield Tensor(stored_name(name, form.leaf), form.dtypes[0], _packed(name, pattern, form.shape, recipe))
    for sidecar in form.sidecars:
        if sidecar.is_required:
            yield Tensor(base + sidecar.leaf, sidecar.dtypes[0], _packed(name, pattern, sidecar.shapes[0], recipe))


def _packed(name: str, pattern: TensorPattern, rule: ShapeRule, recipe: Recipe) -> tuple[int, ...]:
    shape = rule(pattern.shape)
    if shape is None:
        raise UsageError(
            f"--scheme {recipe.scheme}: {name} has shape {list(pattern.shape)}, which it cannot pack; "
            "expected whole groups of the layout it packs; name another scheme"
        )
    return shape


def unpacked_modules(skeleton: Skeleton, recipe: Recipe) -> list[str]:
    """Names, without ".weight", of everything that `recipe` leaves alone."""
    return [
        name.removesuffix(".weight")
        for pattern in skeleton.patterns
        if pattern.required and not recipe.packs(pattern)
        for name in pattern.names()
    ]


def shards(listed: list[Tensor], count: int | None) -> list[list[Tensor]]:
    """`listed` cut in order into `count` files of about one size; as many as needed when unset."""
    total = sum(tensor.nbytes for tensor in listed)
    wanted = count or max(1, ceil_div(total, MOST_SHARD_BYTES))
    wanted = min(wanted, len(listed))
    files: list[list[Tensor]] = [[]]
    written = 0
    for position, tensor in enumerate(listed):
        to_come = wanted - len(files)
        has_its_share = written * wanted >= total * len(files)
        # Each file that is still to come gets at least one tensor.
        if files[-1] and to_come and (has_its_share or len(listed) - position <= to_come):
            files.append([])
        files[-1].append(tensor)
        written += tensor.nbytes
    return files
