"""docs/checkpoints.md names every code, verdict, dialect and scheme there is."""

from __future__ import annotations

from pathlib import Path

from modelbones.audit import Verdict
from modelbones.dialects.known import DIALECTS
from modelbones.findings import Code
from modelbones.quant.registry import FORMS

PAGE = (Path(__file__).parents[2] / "docs" / "checkpoints.md").read_text()


def test_the_page_names_them_all() -> None:
    for word in (*(code.value for code in Code), *DIALECTS, *(form.scheme for form in FORMS)):
        assert f"`{word}`" in PAGE, word
    for verdict in Verdict:
        assert f"| {verdict.value} |" in PAGE


def test_the_page_names_every_tensor_a_scheme_stores_beside_a_weight() -> None:
    for form in FORMS:
        for sidecar in form.sidecars:
            assert f"{sidecar.leaf}`" in PAGE, sidecar.leaf
