"""`Reference`: a repository of the Hub as a person names it, `owner/name[@rev]` or `hf://owner/name[@rev]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modelbones.checkpoint.quote import quoted
from modelbones.errors import UsageError

SCHEME = "hf://"
DEFAULT_REVISION = "main"
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
# Git forbids more in a branch's name than this does.
_REFERENCE = re.compile(rf"({_PART}/{_PART})(?:@([!-~]+))?")
_FILE_ENDINGS = (".json", ".safetensors", ".gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One repository at one revision.

    Attributes:
        repository: "owner/name".
        revision: A branch, a tag or a commit.
    """

    repository: str
    revision: str = DEFAULT_REVISION

    def __str__(self) -> str:
        return f"{self.repository}@{self.revision}"


def parse_reference(text: str) -> Reference | None:
    """The reference `text` is; None where it has another form, as a path or a preset has.

    >>> str(parse_reference("hf://owner/name@v1.0"))
    'owner/name@v1.0'

    Raises:
        UsageError: It begins with hf:// and names no repository.
    """
    is_certain = text.startswith(SCHEME)
    match = _REFERENCE.fullmatch(text.removeprefix(SCHEME))
    if match is None or "--" in match[1] or ".." in text:
        if is_certain:
            raise UsageError(
                f"{quoted(text)}: no repository of the Hub; expected hf://owner/name or hf://owner/name@rev"
            )
        return None
    if not is_certain and match[2] is None and match[1].endswith(_FILE_ENDINGS):
        return None
    return Reference(repository=match[1], revision=match[2] or DEFAULT_REVISION)
