"""Which mixer, MLP and indexer each `glm5_next` layer has: its words for the shared readings."""

from __future__ import annotations

from modelbones.config import Section
from modelbones.families.reading.indexers import runs_indexer as read_runs_indexer
from modelbones.families.reading.mixers import LINEAR_WORDS, NumberedLists
from modelbones.families.reading.mixers import mixers as read_mixers
from modelbones.skeleton import Mixer

MIXER_WORDS = LINEAR_WORDS | dict.fromkeys(
    ("deepseek_sparse_attention", "indexed_attention", "sparse_attention", "full_attention", "attention"), Mixer.DSA
)
SOURCE = "transformers 5.23 configuration_glm5_next.py"


def mixers(text: Section, linear: Section, num_layers: int) -> tuple[Mixer, ...]:
    """The mixer of each text layer, from `layer_types` and the 0-based index lists."""
    return read_mixers(text, NumberedLists(section=linear, full=Mixer.DSA), num_layers, MIXER_WORDS)


def runs_indexer(text: Section, layer_mixers: tuple[Mixer, ...]) -> tuple[bool, ...]:
    """Whether each layer runs an indexer of its own; the others use an earlier selection."""
    return read_runs_indexer(text, tuple(mixer is Mixer.DSA for mixer in layer_mixers), source=SOURCE)
