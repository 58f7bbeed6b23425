"""`Binder`: take each tensor a pattern asks for out of what is stored.

This is the inner loop of `check`, a few dictionary looks a tensor. Tensors that are alike
share one `Stored`, so each kind is judged once a pattern and remembered by identity.
"""

from __future__ import annotations

from itertools import islice

from modelbones.audit.bound import PLAIN, RISKY, Bound, Clash, Want, Wrong
from modelbones.audit.forms import (
    Favoured,
    accepts_sidecar,
    accepts_weight,
    base_of,
    beside,
    choose,
    either,
    form_of,
    judge_sidecar,
    leaf_of,
    types_beside,
    types_of,
    weight_of,
)
from modelbones.checkpoint.census import Census
from modelbones.checkpoint.stored import Stored
from modelbones.findings import Code
from modelbones.quant.claim import Claim
from modelbones.quant.form import Form, Shape
from modelbones.quant.registry import PACKED_LEAVES, forms_stored_as
from modelbones.tensors import EXPERT, TensorPattern

Wants = tuple[frozenset[str], ...]
"""For one weight, the schemes each claim wants it in."""


class Binder:
    """What is stored and not yet taken, and the claims it is held against.

    Attributes:
        left: Stored tensors that no pattern has asked for.
        lost: Names that are in a file no one could read, or past a file's end.
        claims: What the configs say about quantisation; empty when none names modules.
    """

    def __init__(self, census: Census, lost: frozenset[str], claims: tuple[Claim, ...]) -> None:
        self.left = dict(census.tensors)
        self._stored = census.tensors
        self._siblings: tuple[Form, ...] | None = None
        self.lost = lost
        self.claims = claims
        self._tells_experts_apart = any(claim.tells_experts_apart for claim in claims)
        self._unclaimed: Wants = tuple(claim.of_others for claim in claims)
        self._right: set[tuple[int, int]] = set()

    def bind(self, pattern: TensorPattern) -> Bound:
        """Take all tensors of `pattern`."""
        bound = Bound(pattern)
        judged: dict[int, str | Form | Wrong] = {}
        self._right.clear()
        self._siblings = None
        take, lost, plain_bytes = self.left.pop, self.lost, 0
        is_each = self._tells_experts_apart and pattern.num_experts > 0
        for layer in pattern.layers or (None,):
            names = pattern.names_in(layer)
            wants = self._wants(pattern, layer, names[0])
            is_wanted = _is_wanted(wants)
            for name in names:
                if name in lost:
                    bound.lost_names.append(name)
                    take(name, None)
                    self._forget_sidecars(bound, name)
                    continue
                if is_each:
                    wants = self._wants(pattern, layer, name)
                    is_wanted = _is_wanted(wants)
                stored = take(name, None)
                if stored is None:
                    self._absent(bound, name, wants)
                    continue
                how = judged.get(id(stored))
                if how is None:
                    how = self._judge(pattern, name, stored, wants)
                    # What is wrong may be what stands beside this one: the next is judged anew.
                    if not isinstance(how, Wrong):
                        judged[id(stored)] = how
                if how is PLAIN and not is_wanted:
                    bound.bound += 1
                    plain_bytes += stored.nbytes
                elif not isinstance(how, Form) or not self._take_known(bound, name, stored, how, wants):
                    self._settle(bound, name, stored, how, wants)
        _add_plain(bound, plain_bytes)
        return bound

    def _wants(self, pattern: TensorPattern, layer: int | None, name: str) -> Wants:
        """What each claim wants of a weight; a module is left alone under either of its names."""
        if not pattern.is_linear:
            return self._unclaimed
        if pattern.stands_for is None:
            return tuple(claim.wanted(name) for claim in self.claims)
        published = [logical.replace(EXPERT, "0") for logical in pattern.logical_names(layer)[:1]]
        return tuple(claim.wanted(name).intersection(*map(claim.wanted, published)) for claim in self.claims)

    def _judge(self, pattern: TensorPattern, name: str, stored: Stored, wants: Wants) -> str | Form | Wrong:
        """How the tensors of `pattern` that are stored like this one are."""
        permitted = pattern.permitted
        if stored.dtype in permitted.dtypes or stored.dtype in permitted.risky:
            if stored.shape == pattern.shape:
                return RISKY if stored.dtype in permitted.risky else PLAIN
            return Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", f"{list(pattern.shape)}")
        return self._judge_packed(pattern, name, stored, wants)

    def _judge_packed(self, pattern: TensorPattern, name: str, stored: Stored, wants: Wants) -> Form | Wrong:
        """How a tensor is packed that has no type of a plain one."""
        leaf, logical = leaf_of(name), pattern.shape
        best: Form | None = None
        if pattern.is_packable:
            favoured = Favoured(frozenset().union(*wants), self._sibling(pattern))
            best = choose(self.left, name, stored, logical, favoured) or self._alone(name, stored, logical, favoured)
        if best is None:
            return Wrong(Code.DTYPE, name, stored.dtype.value, types_beside(name, self.left) or types_of(pattern, leaf))
        if stored.dtype not in best.dtypes:
            return Wrong(Code.DTYPE, name, stored.dtype.value, either(best.dtypes))
        if best.shape(logical) == stored.shape:
            return best
        return Wrong(Code.SHAPE, name, f"shape {list(stored.shape)}", f"{list(best.shape(logical) or logical)}")

    def _alone(self, name: str, stored: Stored, logical: Shape, favoured: Favoured) -> Form | None:
        """How a weight is packed that nothing stands beside: a claim, its siblings or a lost file may tell."""
        forms = forms_stored_as(leaf_of(name), stored.dtype)
        told = [form for form in forms if not all(favoured.lacks(form)) or self._is_sidecar_lost(name, form)]
        return min(told, key=lambda form: (favoured.lacks(form), form.shape(logical) != stored.shape), default=None)

    def _sibling(self, pattern: TensorPattern) -> Form | None:
        """The form of the first tensor of `pattern` that is packed and right."""
        if self._siblings is None:
            found = (form_of(self._stored, name, pattern.shape) for name in pattern.names())
            self._siblings = tuple(islice((form for form in found if form is not None), 1))
        return self._siblings[0] if self._siblings else None

    def _settle(self, bound: Bound, name: str, stored: Stored, how: str | Form | Wrong, wants: Wants) -> None:
        """Everything but a plain weight that is meant to be plain."""
        bound.tensors += 1
        bound.nbytes += stored.nbytes
        if isinstance(how, Wrong):
            bound.wrong.append(how._replace(name=name))
            self._forget_sidecars(bound, name)
        elif isinstance(how, Form):
            self._packed(bound, name, stored, how, wants)
        elif _is_wanted(wants) and (types := types_beside(name, self.left)):
            bound.wrong.append(Wrong(Code.DTYPE, name, stored.dtype.value, types))
            self._forget_sidecars(bound, name)
        else:
            bound.count(PLAIN, stored.nbytes)
            if how is RISKY:
                bound.risky.append(name)
            for number, wanted in enumerate(wants):
                if _is_wanted((wanted,)):
                    bound.clash(number, Clash.UNPACKED, name)

    def _packed(self, bound: Bound, name: str, stored: Stored, form: Form, wants: Wants) -> None:
        """A weight in `form`, or in a sister of it that what stands beside it speaks for."""
        wrong = self._sidecar_faults(bound, name, form)
        if wrong:
            again = self._judge_packed(bound.pattern, name, stored, wants)
            if isinstance(again, Form) and again is not form:
                form = again
                wrong = self._sidecar_faults(bound, name, form)
        nbytes = stored.nbytes + self._take_sidecars(bound, name, form)
        if wrong:
            bound.wrong += [fault for fault, _ in wrong]
            bound.wants += [want for _, want in wrong if want is not None]
        elif self._is_sidecar_lost(name, form):
            bound.lost_names.append(weight_of(name))
        else:
            bound.count(form.scheme, nbytes)
        for number, wanted in enumerate(wants):
            if form.scheme not in wanted:
                bound.clash(number, Clash.OTHER_SCHEME if wanted else Clash.UNCLAIMED, name)

    def _take_known(self, bound: Bound, name: str, stored: Stored, form: Form, wants: Wants) -> bool:
        """Take a packed weight whose sidecars are all of kinds that were found right before."""
        known, left = self._right, self.left
        base = name[: -len(form.leaf)] if name.endswith(form.leaf) else base_of(name)
        beside, nbytes = [], stored.nbytes
        for sidecar in form.sidecars:
            full = base + sidecar.leaf
            found = left.get(full)
            if full in self.lost:
                return False
            if found is not None and (id(sidecar), id(found)) in known:
                beside.append(full)
                nbytes += found.nbytes
            elif found is not None or sidecar.is_required:
                return False
        for wanted in wants:
            if form.scheme not in wanted:
                return False
        for full in beside:
            del left[full]
        bound.tensors += 1 + len(beside)
        bound.nbytes += nbytes
        bound.count(form.scheme, nbytes)
        return True

    def _sidecar_faults(self, bound: Bound, name: str, form: Form) -> list[tuple[Wrong, Want | None]]:
        """What is wrong beside a weight in `form`, with what would mend a missing sidecar."""
        base, logical = base_of(name), bound.pattern.shape
        faults: list[tuple[Wrong, Want | None]] = []
        for sidecar in form.sidecars:
            full = base + sidecar.leaf
            stored = self.left.get(full)
            if stored is None:
                if sidecar.is_required and full not in self.lost:
                    lacking = Wrong(Code.SCALE, full, f"{name} without it", "every sidecar its scheme needs")
                    faults.append((lacking, Want(full, accepts_sidecar(sidecar, logical))))
                continue
            wrong = judge_sidecar(sidecar, full, stored, logical)
            if wrong is None:
                self._right.add((id(sidecar), id(stored)))
            else:
                faults.append((wrong, None))
        return faults

    def _is_sidecar_lost(self, name: str, form: Form) -> bool:
        """Whether a sidecar that `form` needs beside this weight is in a file no one could read."""
        base, lost = base_of(name), self.lost
        return bool(lost) and any(s.is_required and base + s.leaf in lost for s in form.sidecars)

    def _take_sidecars(self, bound: Bound, name: str, form: Form) -> int:
        """Take a form's sidecars; gives their bytes."""
        base, nbytes = base_of(name), 0
        for sidecar in form.sidecars:
            stored = self.left.pop(base + sidecar.leaf, None)
            if stored is not None:
                bound.tensors += 1
                nbytes += stored.nbytes
        bound.nbytes += nbytes
        return nbytes

    def _absent(self, bound: Bound, name: str, wants: Wants) -> None:
        """A weight that is not stored under its own name: packed under another, or missing."""
        pattern = bound.pattern
        if pattern.is_packable:
            base = base_of(name)
            for leaf in PACKED_LEAVES:
                if base + leaf in self.lost:
                    bound.lost_names.append(name)
                    self._forget_sidecars(bound, name)
                    return
                stored = self.left.pop(base + leaf, None)
                if stored is not None:
                    how = self._judge_packed(pattern, base + leaf, stored, wants)
                    self._settle(bound, base + leaf, stored, how, wants)
                    return
        if not pattern.required:
            return
        bound.absent.append(name)
        orphans = self._forget_sidecars(bound, name) if pattern.is_packable else []
        if orphans:
            bound.wrong.append(Wrong(Code.SCALE, name, f"{orphans[0]} without its weight", "a weight for each scale"))
        else:
            bound.missing.append(name)
        bound.wants.append(Want(name, accepts_weight(pattern)))

    def _forget_sidecars(self, bound: Bound, name: str) -> list[str]:
        """Take what stands beside a weight that is wrong itself: one fault, one finding."""
        names = beside(self.left, name)
        for sidecar in names:
            bound.nbytes += self.left.pop(sidecar).nbytes
        bound.tensors += len(names)
        return names


def _is_wanted(wants: Wants) -> bool:
    """Whether some claim says that a weight must be quantised."""
    return any(wanted and PLAIN not in wanted for wanted in wants)


def _add_plain(bound: Bound, nbytes: int) -> None:
    """Add the plain weights the loop only counted."""
    counted = bound.bound - sum(bound.schemes.values())
    bound.tensors += counted
    bound.nbytes += nbytes
    bound.schemes[PLAIN] += counted
    bound.scheme_bytes[PLAIN] += nbytes
