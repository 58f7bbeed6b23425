"""`Recipe`: which linear weights a producer packs, and how its config then says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelbones.quant.form import Form
from modelbones.tensors import Role, TensorPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How `synth` writes a scheme.

    Attributes:
        scheme: Its name.
        form: How each packed weight is stored.
        roles: Roles whose linear weights are packed.
        skips: Parts of a name that are left alone all the same.
        declare: Modules left unquantised -> the object that says so.
        key: The config key it stands under.
        stack_form: How stacks of experts without ".weight" behind their names are stored, where that differs.
    """

    scheme: str
    form: Form
    roles: frozenset[Role]
    skips: tuple[str, ...]
    declare: Callable[[list[str]], dict[str, Any]]
    key: str = "quantization_config"
    stack_form: Form | None = None

    def packs(self, pattern: TensorPattern) -> bool:
        """Whether the weights of `pattern` are packed."""
        is_meant = pattern.is_linear and pattern.role in self.roles
        return is_meant and not any(skip in pattern.name for skip in self.skips)

    def form_of(self, pattern: TensorPattern) -> Form:
        """How the weights of `pattern` are stored when they are packed."""
        if self.stack_form is not None and not pattern.name.endswith(".weight"):
            return self.stack_form
        return self.form
