"""metrale, the seeds' engine: a slot pool, a reserve at full context, paged latents.

Recurrent and conv state live in slots, one more than there are sequences: padded rows of a
captured batch write into the spare one. What a sequence owns is reserved whole, for the
longest context. Latents are paged by the tokens a sequence has. Source:
Metrale/metrale-inference-alpha model-arch seq_state_reserve.rs, glm5next_skeleton/budget.rs; the spare slot:
inclusionAI/AReno pull 509. The page size is the server's own and is not rounded to here.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.buffers import Home
from modelbones.errors import UsageError
from modelbones.ranks import Axis, Ranks
from modelbones.reserve import reserve
from modelbones.skeleton import Skeleton


@dataclass(frozen=True, slots=True, kw_only=True)
class MetraleServer:
    """One rank of a server.

    Attributes:
        skeleton: The model.
        ranks: Ranks that share the state: heads and latent divide, the indexer does not.
        num_spec: Tokens drafted a step.
        spec_on: Whether the MTP layer drafts.
    """

    skeleton: Skeleton
    ranks: int
    num_spec: int = 0
    spec_on: bool = False

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise UsageError(f"metrale: ranks: found {self.ranks}; expected at least 1; name a real rank count")

    @property
    def _cut(self) -> Ranks:
        return Ranks.of({Axis.HEADS: self.ranks, Axis.LATENT: self.ranks})

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot: the fixed state of one sequence."""
        terms = self.skeleton.budget(self.num_spec).counted
        return sum(term.nbytes(tokens=0, ranks=self._cut) for term in terms if term.home is Home.SLOT)

    def page_bytes(self, tokens: int) -> int:
        """Bytes of the paged rows of one sequence of `tokens`, the MTP layer's with speculation."""
        layers = self.skeleton.all_layers() if self.spec_on else self.skeleton.layers
        return sum(
            buffer.nbytes(tokens=tokens, ranks=self._cut)
            for layer in layers
            for buffer in layer.buffers
            if buffer.home is Home.PAGED
        )

    def owned_bytes(self, context: int) -> int:
        """Bytes one sequence owns, reserved for `context` tokens."""
        return reserve(self.skeleton, context, spec_on=self.spec_on).total()

    def parts(self, *, context: int, sequences: int) -> dict[str, int]:
        """Bytes of state for `sequences` of `context` tokens each, by what holds them."""
        return {
            "state.slots": self.slot_bytes * sequences,
            "state.scratch_slot": self.slot_bytes,
            "state.reserve": self.owned_bytes(context) * sequences,
            "state.pages": self.page_bytes(context) * sequences,
        }

    def sequence_bytes(self, context: int) -> int:
        """Bytes one more sequence of `context` tokens takes."""
        return self.slot_bytes + self.owned_bytes(context) + self.page_bytes(context)
