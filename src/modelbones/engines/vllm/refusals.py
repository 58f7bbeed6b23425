"""What vLLM, or this description of it, refuses: the place, the finding and the way out."""

from __future__ import annotations

from modelbones.errors import EngineRefusedError, UsageError

__all__ = ["EngineRefusedError", "UnknownVersionError"]


class UnknownVersionError(UsageError):
    """A version whose rules are not known; `known` lists those that are, oldest first."""

    def __init__(self, *, version: str, known: tuple[str, ...]) -> None:
        self.version = version
        self.known = known
        super().__init__(
            f'vllm: version: found "{version}"; expected one of {", ".join(known)}; '
            "name one of them to assume its rules, and the answer says so"
        )
