"""Small models of every family, and what a writer would store of them, held in memory."""

from __future__ import annotations

from functools import cache
from typing import Any

from modelbones.audit import Audit, audit
from modelbones.dialects.known import DIALECTS
from modelbones.dialects.respell import respelled
from modelbones.families.registry import build, family_of, preset, read_mapping
from modelbones.families.shrinking import shortest_stack
from modelbones.quant.registry import RECIPES, read_claims
from modelbones.skeleton import Skeleton
from modelbones.synth.layout import tensors, unpacked_modules
from tests.audit.stores import census_of
from tests.release import Stores

PLACE = "config.json"


@cache
def small(name: str) -> Skeleton:
    """A preset, shrunk."""
    config = read_mapping(preset(name), place=name)
    family = family_of(config.model_type)
    assert family is not None
    assert family.tiny is not None
    return build(read_mapping(family.tiny(config.declared.raw, shortest_stack(build(config).layers)), place=name))


def stored(name: str, dialect: str = "published", scheme: str = "none") -> Stores:
    """What `synth --shrink` writes of a preset; every name once."""
    skeleton = small(name)
    listed = list(tensors(respelled(skeleton, DIALECTS.get(dialect)), skeleton.dtype, RECIPES.get(scheme)))
    stores: Stores = {tensor.name: (tensor.dtype.value, tensor.shape) for tensor in listed}
    assert len(stores) == len(listed), "two tensors of one name"
    return stores


def held(name: str, stores: Stores, quantization: dict[str, Any] | None = None) -> Audit:
    """The audit of `stores` against a shrunk preset."""
    claims = read_claims([(f"{PLACE} quantization_config", quantization)], place=PLACE)
    return audit(small(name), census_of(stores), claims)


def declared(name: str, scheme: str) -> dict[str, Any] | None:
    """The quantisation config `synth` writes beside it."""
    recipe = RECIPES.get(scheme)
    return None if recipe is None else recipe.declare(unpacked_modules(small(name), recipe))
