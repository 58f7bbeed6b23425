"""State bytes against kvfit 0.3.0, an independent calculator: exact on every family it reads and we do."""

from __future__ import annotations

import pytest

from modelbones.families.registry import build, preset, preset_names, read_config

kvfit = pytest.importorskip("kvfit")

pytestmark = pytest.mark.oracle

LENGTHS = (1, 6, 127, 128, 129, 4_096, 131_072, 131_073)
UNREAD = {
    "gemma-3-4b": "its published config leaves sizes to the class, which kvfit does not fill in",
    "glm-4.5-air": "unsupported",
    "glm-4.7-flash": "unsupported",
    "glm-5.3-flash": "unsupported",
    "kimi-k2": "unsupported",
    "kimi-k2.5": "unsupported",
    "kimi-linear-48b": "unsupported",
}
DIFFERENT = {"deepseek-v4-flash": "its windows, pools and tails are modelled in another way"}


@pytest.mark.parametrize("name", [name for name in preset_names() if name not in UNREAD and name not in DIFFERENT])
@pytest.mark.parametrize("tokens", LENGTHS)
def test_a_sequence_costs_what_kvfit_says(name: str, tokens: int) -> None:
    config = preset(name)
    theirs = kvfit.estimate_cache(config, context_tokens=tokens).total_bytes
    assert build(read_config(config)).budget().for_sequence(tokens) == theirs


@pytest.mark.parametrize("name", UNREAD)
def test_what_kvfit_does_not_read_is_still_not_read(name: str) -> None:
    with pytest.raises(kvfit.UnsupportedArchitecture):
        kvfit.estimate_cache(preset(name), context_tokens=4_096)
