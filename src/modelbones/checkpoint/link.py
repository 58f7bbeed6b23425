"""What an HTTP client must offer here, and what a connection may do instead of answering.

`hub.py` makes it of the Hub's own client; everything above is written against this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class Response(Protocol):
    """An answer whose body was not read yet."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, found in any case."""

    def iter_raw(self) -> Iterator[bytes]:
        """The body as it comes; leaving the context early drops the rest."""


class Client(Protocol):
    """Sends one request, from any thread; follows no redirect."""

    def __call__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> AbstractContextManager[Response]:
        """The answer to GET, or a LinkError."""


class Broken(Enum):
    """What became of a connection."""

    UNREACHABLE = "unreachable"
    UNTRUSTED = "untrusted"
    SLOW = "slow"
    CUT_OFF = "cut off"


class LinkError(Exception):
    """A connection that did not answer; kept inside this package, never shown."""

    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        super().__init__(broken.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way to one Hub.

    Attributes:
        client: The HTTP client.
        endpoint: The Hub's address, without a slash at its end.
        token: What proves who asks; sent to `endpoint` and to no other host.
        timeout_s: Seconds a connection may be silent.
        user_agent: What names us to the server.
    """

    client: Client
    endpoint: str
    token: str | None = field(default=None, repr=False)
    timeout_s: float
    user_agent: str
