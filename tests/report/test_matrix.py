from __future__ import annotations

from pathlib import Path

from modelbones.families.registry import families, preset_names
from modelbones.report.matrix import CLOSING, OPENING, block, support_matrix

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_s_matrix_is_the_registry_s() -> None:
    """Write it anew with `python -m tests.report.test_matrix`."""
    text = README.read_text(encoding="utf-8")
    assert text.count(OPENING) == text.count(CLOSING) == 1
    start, end = text.index(OPENING), text.index(CLOSING) + len(CLOSING)
    assert text[start:end] == block()


def test_every_family_and_preset_has_its_place() -> None:
    rows = [line for line in support_matrix().splitlines() if line.startswith("| `")]
    assert len(rows) == len(families()) + 1
    assert all(any(f"`{name}`" in row for row in rows) for name in preset_names())
    assert all(any(f"`{word}`" in row for row in rows) for family in families() for word in family.model_types)


def test_a_row_tells_layers_state_and_modules() -> None:
    row = next(line for line in support_matrix().splitlines() if line.startswith("| `qwen3_5_moe`"))
    assert (
        "| gdn, attention, routed moe | gdn recurrent, gdn conv, kv | MTP (apart), vision tower, listed only |" in row
    )


def write() -> None:
    """Put the matrix into README.md."""
    text = README.read_text(encoding="utf-8")
    start, end = text.index(OPENING), text.index(CLOSING) + len(CLOSING)
    README.write_text(text[:start] + block() + text[end:], encoding="utf-8")


if __name__ == "__main__":
    write()
