"""`Binder`: take each tensor a pattern asks for out of what is stored.

This is the inner loop of `check`, a few dictionary looks a tensor. Tensors that are alike
share one `Stored`, so each kind is judged once a pattern and remembered by identity.
"""

from __future__ import annotations

from collections.abc import Callable

from modelbones.audit.bound import PLAIN, Bound, Want, Wrong
from modelbones.checkpoint.census import Census
from modelbones.checkpoint.stored import Stored
from modelbones.findings import Code
from modelbones.quant.claim import Claim
from modelbones.quant.form import Form, Shape, Sidecar
from modelbones.quant.registry import FORMS, PACKED_LEAVES, SIDECAR_LEAVES, forms_stored_as
from modelbones.tensors import TensorPattern

WEIGHT = "weight"


class Binder:
    """What is stored and not yet taken, and the claim it is held against.

    Attributes:
        left: Stored tensors that no pattern has asked for.
        lost: Names that are in a file no one could read, or past a file's end.
        claim: What the config says about quantisation.
    """

    def __init__(self, census: Census, lost: frozenset[str], claim: Claim | None) -> None:
        self.left = dict(census.tensors)
        self.lost = lost
        self.claim = claim

    def bind(self, pattern: TensorPattern) -> Bound:
        """Take all tensors of `pattern`."""
        bound = Bound(pattern)
        judged: dict[int, str | Form | Wrong] = {}
        take, lost = self.left.pop, self.lost
        for layer in pattern.layers or (None,):
            names = pattern.names_in(layer)
            is_claimed = self._is_claimed(pattern, names[0])
            for name in names:
                if name in lost:
                    bound.lost += 1
                    take(name, None)
                    continue
                stored = take(name, None)
                if stored is None:
                    self._absent(bound, name, is_claimed)
                    continue
                how = judged.get(id(stored))
                if how is None:
                    how = judged[id(stored)] = self._judge(pattern, name, stored)
                if how is PLAIN and not is_claimed:
                    bound.bound += 1
                    bound.tensors += 1
                    bound.nbytes += stored.nbytes
                    bound.schemes[PLAIN] += 1
                else:
                    self._settle(bound, name, stored, how, is_claimed)
        bound.scheme_bytes[PLAIN] = bound.nbytes - sum(
            nbytes for scheme, nbytes in bound.scheme_bytes.items() if scheme is not PLAIN
        )
        return bound

    def _is_claimed(self, pattern: TensorPattern, name: str) -> bool:
        return self.claim is not None and pattern.is_linear and self.claim.covers(name)

    def _judge(self, pattern: TensorPattern, name: str, stored: Stored) -> str | Form | Wrong:
        """How the tensors of `pattern` that are stored like this one are."""
        permitted = pattern.permitted
        if stored.dtype in permitted.dtypes or stored.dtype in permitted.risky:
            if stored.shape == pattern.shape:
                return "risky" if stored.dtype in permitted.risky else PLAIN
            return Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", f"{list(pattern.shape)}")
        forms = forms_stored_as(WEIGHT, stored.dtype) if pattern.is_linear else ()
        present = self._with_sidecars(name, forms) or (forms if self._is_claimed(pattern, name) else ())
        fitting = [form for form in present if form.shape(pattern.shape) == stored.shape]
        if fitting:
            return fitting[0]
        if present:
            expected = present[0].shape(pattern.shape)
            return Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", f"{list(expected or pattern.shape)}")
        types = " or ".join(dtype.value for dtype in (*permitted.dtypes, *permitted.risky))
        return Wrong(Code.DTYPE, name, stored.dtype.value, types)

    def _with_sidecars(self, name: str, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        """Those of `forms` whose sidecars stand beside this weight, all required ones first."""
        base = name.removesuffix(WEIGHT)
        ranked = []
        for form in forms:
            present = [base + sidecar.leaf in self.left for sidecar in form.sidecars if sidecar.required]
            if any(present):
                ranked.append((not all(present), form))
        return tuple(form for _, form in sorted(ranked, key=lambda pair: pair[0]))

    def _settle(self, bound: Bound, name: str, stored: Stored, how: str | Form | Wrong, is_claimed: bool) -> None:
        """Everything but a plain weight that is claimed to be plain."""
        bound.tensors += 1
        bound.nbytes += stored.nbytes
        if isinstance(how, Wrong):
            bound.wrong.append(how._replace(name=name))
            self._forget_sidecars(bound, name)
        elif isinstance(how, Form):
            self._sidecars(bound, name, how, stored)
            if not is_claimed:
                bound.unclaimed.append(name)
        elif is_claimed and self._has_sidecar(name):
            bound.wrong.append(Wrong(Code.DTYPE, name, stored.dtype.value, _packed_types(name, self.left)))
            self._forget_sidecars(bound, name)
        else:
            bound.bound += 1
            bound.schemes[PLAIN] += 1
            if how == "risky":
                bound.risky.append(name)
            if is_claimed:
                bound.unpacked.append(name)

    def _sidecars(self, bound: Bound, name: str, form: Form, weight: Stored) -> None:
        """Take the sidecars of a packed weight; the weight counts when they are right."""
        base = name.removesuffix(form.leaf if name.endswith(form.leaf) else WEIGHT)
        is_right = True
        nbytes = weight.nbytes
        for sidecar in form.sidecars:
            beside = base + sidecar.leaf
            stored = self.left.pop(beside, None)
            if stored is None:
                if sidecar.required and beside not in self.lost:
                    is_right = False
                    bound.wrong.append(Wrong(Code.SCALE, beside, f"{name} without it", "a scale for each weight"))
                    bound.wants.append(Want(beside, _accepts_sidecar(sidecar, bound.pattern.shape)))
                continue
            bound.tensors += 1
            bound.nbytes += stored.nbytes
            nbytes += stored.nbytes
            wrong = _judge_sidecar(sidecar, beside, stored, bound.pattern.shape)
            if wrong is not None:
                is_right = False
                bound.wrong.append(wrong)
        bound.bound += is_right
        bound.schemes[form.scheme] += 1
        bound.scheme_bytes[form.scheme] += nbytes

    def _absent(self, bound: Bound, name: str, is_claimed: bool) -> None:
        """A weight that is not stored under its own name: packed under another, or missing."""
        pattern = bound.pattern
        base = name.removesuffix(WEIGHT)
        for leaf in PACKED_LEAVES if pattern.is_linear else ():
            stored = self.left.pop(base + leaf, None)
            if stored is not None:
                self._packed(bound, base + leaf, leaf, stored, is_claimed)
                return
        if not pattern.required:
            return
        if pattern.is_linear and self._has_sidecar(name):
            beside = self._forget_sidecars(bound, name)
            bound.wrong.append(Wrong(Code.SCALE, name, f"{beside[0]} without its weight", "a weight for each scale"))
        else:
            bound.missing.append(name)
        bound.wants.append(Want(name, _accepts_weight(pattern)))

    def _packed(self, bound: Bound, name: str, leaf: str, stored: Stored, is_claimed: bool) -> None:
        forms = forms_stored_as(leaf, stored.dtype)
        present = self._with_sidecars(name.removesuffix(leaf) + WEIGHT, forms) or forms
        if not present:
            types = {dtype.value: None for form in FORMS if form.leaf == leaf for dtype in form.dtypes}
            self._settle(
                bound, name, stored, Wrong(Code.DTYPE, name, stored.dtype.value, " or ".join(types)), is_claimed
            )
            return
        fitting = [form for form in present if form.shape(bound.pattern.shape) == stored.shape]
        expected = present[0].shape(bound.pattern.shape)
        wrong = Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", f"{list(expected or ())}")
        self._settle(bound, name, stored, fitting[0] if fitting else wrong, is_claimed)

    def _has_sidecar(self, name: str) -> bool:
        base = name.removesuffix(WEIGHT)
        return any(base + leaf in self.left for leaf in SIDECAR_LEAVES)

    def _forget_sidecars(self, bound: Bound, name: str) -> list[str]:
        """Take what stands beside a weight that is wrong itself: one fault, one finding."""
        base = next((name.removesuffix(leaf) for leaf in (*PACKED_LEAVES, WEIGHT) if name.endswith(leaf)), name)
        beside = [base + leaf for leaf in sorted(SIDECAR_LEAVES) if base + leaf in self.left]
        for sidecar in beside:
            stored = self.left.pop(sidecar)
            bound.tensors += 1
            bound.nbytes += stored.nbytes
        return beside


def _judge_sidecar(sidecar: Sidecar, name: str, stored: Stored, logical: Shape) -> Wrong | None:
    if stored.dtype not in sidecar.dtypes:
        types = " or ".join(dtype.value for dtype in sidecar.dtypes)
        return Wrong(Code.DTYPE, name, stored.dtype.value, types)
    if not sidecar.fits(logical, stored.shape):
        shapes = " or ".join(str(list(rule(logical) or ())) for rule in sidecar.shapes)
        return Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", shapes)
    return None


def _accepts_sidecar(sidecar: Sidecar, logical: Shape) -> Callable[[Stored], bool]:
    return lambda stored: stored.dtype in sidecar.dtypes and sidecar.fits(logical, stored.shape)


def _accepts_weight(pattern: TensorPattern) -> Callable[[Stored], bool]:
    """Whether a tensor could be one of `pattern`, plain or in some form."""
    plain = frozenset((*pattern.permitted.dtypes, *pattern.permitted.risky))
    forms = FORMS if pattern.is_linear else ()

    def accepts(stored: Stored) -> bool:
        if stored.dtype in plain:
            return stored.shape == pattern.shape
        return any(stored.dtype in form.dtypes and form.shape(pattern.shape) == stored.shape for form in forms)

    return accepts


def _packed_types(name: str, left: dict[str, Stored]) -> str:
    """The types a weight would have to go with the sidecars it has."""
    base = name.removesuffix(WEIGHT)
    types = {
        dtype.value: None
        for form in FORMS
        if form.leaf == WEIGHT and any(base + sidecar.leaf in left for sidecar in form.sidecars)
        for dtype in form.dtypes
    }
    return " or ".join(types)
