from __future__ import annotations

from pathlib import Path

import pytest
from safetensors import SafetensorError, deserialize

from modelbones.checkpoint.directory import read_checkpoint
from modelbones.findings import Code, Severity
from tests.checkpoint.corpus import CORPUS, DIFFERENCES
from tests.checkpoint.corpus_words import Case


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_a_file_gives_exactly_this_finding_or_none(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(case.raw)
    census = read_checkpoint(path)
    assert [finding.message for finding in census.findings] == ([] if case.message is None else [case.message])
    for finding in census.findings:
        assert finding.severity is Severity.ERROR
        assert finding.name == "m.safetensors"
        assert finding.code is (Code.TRUNCATED if "the file ends" in finding.message else Code.HEADER)
        assert finding.message.endswith(finding.fix)
        assert finding.why


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_the_safetensors_package_accepts_or_refuses_as_written_here(case: Case) -> None:
    try:
        deserialize(case.raw)
        accepts = True
    except SafetensorError:
        accepts = False
    assert accepts == case.package


def test_the_differences_from_the_package_are_these_and_no_others() -> None:
    assert {case.name for case in CORPUS if (case.message is None) != case.package} == set(DIFFERENCES)


def test_the_corpus_has_no_name_twice_and_at_least_40_refusals() -> None:
    assert len({case.name for case in CORPUS}) == len(CORPUS)
    assert sum(case.message is not None for case in CORPUS) >= 40
