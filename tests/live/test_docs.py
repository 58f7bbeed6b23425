"""The page about live state says what is so: its example runs, its table is walked."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from modelbones.live import Glm5NextDsaState
from tests.live.devices import SMALL, NumpyDevice, arrays, random_rows

PAGE = Path(__file__).parents[2] / "docs" / "live-state.md"


def test_the_example_runs(capsys) -> None:  # type: ignore[no-untyped-def]
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(compile(example, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == (
        "indexer cache: row 16385 is past its 16384 reserved rows; the cache never grows; "
        "raise --max-seq-len to at least 16388\n"
    )


def test_the_speculative_step_is_as_the_table_says() -> None:
    device = NumpyDevice()
    state = Glm5NextDsaState.alloc(device.backend, SMALL)
    rows = random_rows(Random(0), 13)

    def now() -> list[int]:
        plan = state.geometry(SMALL, 1)
        return [state.len(), plan.n_pools, plan.tail_rows]

    walked = []
    for step in (
        lambda: state.append(device.backend, *arrays(device, rows[:9])),
        lambda: state.append(device.backend, *arrays(device, rows[9:12])),
        lambda: state.rewind_to(10),
        lambda: state.append(device.backend, *arrays(device, rows[12:])),
    ):
        step()
        walked.append(now())
    section = PAGE.read_text().split("## A speculative step")[1].split("##")[0]
    told = re.findall(r"^\|.*\| (\d+) \| (\d+)[^|]*\| (\d+)[^|]*\|$", section, flags=re.MULTILINE)
    assert walked == [[int(number) for number in line] for line in told]
