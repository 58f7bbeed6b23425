"""What vLLM, or this description of it, refuses: the place, the finding and the way out."""

from __future__ import annotations

from modelbones.errors import ModelbonesError, UsageError


class EngineRefusedError(ModelbonesError):
    """The engine would not start so, or no source tells what it would do.

    Attributes:
        place: The setting or the state that is refused.
        found: What was asked for.
        expected: What would be accepted.
        fix: The way out.
    """

    def __init__(self, *, place: str, found: str, expected: str, fix: str) -> None:
        self.place = place
        self.found = found
        self.expected = expected
        self.fix = fix
        super().__init__(f"vllm: {place}: found {found}; expected {expected}; {fix}")


class UnknownVersionError(UsageError):
    """A version whose rules are not known; `known` lists those that are, oldest first."""

    def __init__(self, *, version: str, known: tuple[str, ...]) -> None:
        self.version = version
        self.known = known
        super().__init__(
            f'vllm: version: found "{version}"; expected one of {", ".join(known)}; '
            "name one of them to assume its rules, and the answer says so"
        )
