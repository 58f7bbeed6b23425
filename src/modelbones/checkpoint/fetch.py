"""`Fetcher`: GET with everything that can go wrong on the way; whole small files and ranges of large ones."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from modelbones.checkpoint import refusals
from modelbones.checkpoint.link import Broken, Link, LinkError, Response
from modelbones.checkpoint.quote import quoted
from modelbones.errors import SourceError

TRIES = 3
MOST_REDIRECTS = 5
PAUSE_S = 0.5
SHORT_BYTES = 64 * 1024
LONGEST_WAIT_S = 30.0
"""The longest pause a server may ask for before it is told as an error."""
MOST_SECONDS = 120.0
"""The longest one body may take."""
_SUCCESSES = frozenset((200, 206, 416))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})")
_RESET = re.compile(r";\s*t\s*=\s*(\d{1,9})")


class Span(NamedTuple):
    """Bytes to ask for, from `first` to `last`, both included."""

    first: int
    last: int


class Body(NamedTuple):
    """What came: the bytes, the size of the whole file, and the address that gave them."""

    raw: bytes
    file_bytes: int
    url: str


class Moved(NamedTuple):
    """The file is at another address."""

    url: str


class _WaitError(Exception):
    """Ask again after a pause; `last` is what to say when there is no more asking."""

    def __init__(self, seconds: float, last: SourceError) -> None:
        self.seconds = seconds
        self.last = last
        super().__init__(seconds)


@dataclass(slots=True, kw_only=True)
class Fetcher:
    """Fetches over one link; used by many threads.

    Attributes:
        link: The way to the Hub.
        revision: The revision asked for, for messages.
        stopped: Set when nobody waits for answers any more.
    """

    link: Link
    revision: str
    stopped: Event = field(default_factory=Event)

    def whole(self, url: str, *, place: str, most_bytes: int) -> bytes:
        """A small file, redirects followed; a SourceError in our words where it cannot be had."""
        return self._followed(url, None, place, most_bytes).raw

    def step(self, url: str, span: Span | None, *, place: str, most_bytes: int) -> Body | Moved:
        """One address asked, again where a pause may help; where it sends us is not followed."""
        for tries in range(1, TRIES + 1):
            try:
                return self._ask(url, span, place, most_bytes, tries)
            except _WaitError as wait:
                if tries == TRIES or wait.seconds > LONGEST_WAIT_S or self.stopped.wait(wait.seconds):
                    raise wait.last from None
        raise AssertionError("the last try returns or raises")

    def _followed(self, url: str, span: Span | None, place: str, most_bytes: int) -> Body:
        for _ in range(MOST_REDIRECTS):
            answer = self.step(url, span, place=place, most_bytes=most_bytes)
            if isinstance(answer, Body):
                return answer
            url = answer.url
        raise refusals.bad_redirect(f"that leads on for {MOST_REDIRECTS} times", place=place)

    def _ask(self, url: str, span: Span | None, place: str, most_bytes: int, tries: int) -> Body | Moved:
        link = self.link
        try:
            with link.client(url, self._headers(url, span), link.timeout_s) as response:
                if response.status_code not in _SUCCESSES:
                    _drain(response)
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    return Moved(_target(url, response.headers["location"], place=place))
                self._ensure_success(response, tries, place=place)
                return _body(response, span, url, place=place, most_bytes=most_bytes)
        except LinkError as error:
            last = refusals.broken_link(error.broken, tries, place=place, server=_server(url), timeout_s=link.timeout_s)
            if error.broken is Broken.UNTRUSTED:
                raise last from None
            raise _WaitError(0.0 if error.broken is not Broken.UNREACHABLE else PAUSE_S * tries, last) from None

    def _headers(self, url: str, span: Span | None) -> dict[str, str]:
        headers = {"User-Agent": self.link.user_agent, "Accept-Encoding": "identity"}
        if span is not None:
            headers["Range"] = f"bytes={span.first}-{span.last}"
        if self.link.token is not None and origin(url) == origin(self.link.endpoint):
            headers["Authorization"] = f"Bearer {self.link.token}"
        return headers

    def _ensure_success(self, response: Response, tries: int, *, place: str) -> None:
        status, headers, has_token = response.status_code, response.headers, self.link.token is not None
        if status in _SUCCESSES:
            return
        if status == 429:
            wait_s = _asked_wait(headers)
            last = refusals.rate_limited(wait_s, place=place, has_token=has_token)
            raise _WaitError(float(tries) if wait_s is None else wait_s, last)
        if status >= 500 or status == 408:
            raise _WaitError(PAUSE_S * tries, refusals.failing(status, tries, place=place))
        raise refusals.refused(status, headers, place=place, revision=self.revision, has_token=has_token)


def origin(url: str) -> str:
    """Scheme, host and port of an address: what a token is for."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _server(url: str) -> str:
    """An address as messages show it: no path, no password."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"


def _target(url: str, location: str, *, place: str) -> str:
    """Where a redirect leads, if it may be followed."""
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
        _ = parts.port
    except ValueError:
        raise refusals.bad_redirect("to no address", place=place) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not target.isprintable():
        raise refusals.bad_redirect("to no address", place=place)
    if parts.scheme == "http" and urlsplit(url).scheme == "https":
        raise refusals.bad_redirect("from https to http", place=place)
    return target


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: Retry-After, or the reset of its RateLimit header."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    match = _RESET.search(headers.get("ratelimit", ""))
    return float(match[1]) if match else None


def _drain(response: Response) -> None:
    """Read a short body that nobody needs: a connection is kept only once its answer is read."""
    length = _length(response.headers)
    if length is not None and length <= SHORT_BYTES:
        for _ in response.iter_raw():
            pass


def _body(response: Response, span: Span | None, url: str, *, place: str, most_bytes: int) -> Body:
    status, headers = response.status_code, response.headers
    if headers.get("content-encoding", "identity") != "identity":
        raise refusals.not_a_hub("a compressed body that was not asked for", place=place)
    if span is None:
        if status != 200:
            raise refusals.not_a_hub(f"HTTP {status} for a whole file", place=place)
        raw = _read(response, most_bytes, _length(headers), place=place)
        return Body(raw, len(raw), url)
    length, file_bytes = _ranged_length(status, headers, span, place=place)
    raw = _read(response, length, length, place=place) if length else b""
    return Body(raw, file_bytes, url)


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _ranged_length(status: int, headers: Mapping[str, str], span: Span, *, place: str) -> tuple[int, int]:
    """(bytes that must come, size of the whole file) of an answer to a range."""
    length, said = _length(headers), headers.get("content-range", "")
    match = _CONTENT_RANGE.fullmatch(said)
    if status == 416 and match and match[1] is None and int(match[3]) <= span.first:
        return 0, int(match[3])
    # A file that is no longer than the range may come whole: nothing more is read for it.
    if status == 200 and span.first == 0 and length is not None and length <= span.last + 1:
        return length, length
    if status == 206 and match and match[1] is not None:
        first, last, file_bytes = int(match[1]), int(match[2]), int(match[3])
        wanted = min(span.last, file_bytes - 1)
        if first == span.first and last == wanted and length in (None, wanted - first + 1):
            return wanted - first + 1, file_bytes
    size = f" and {length:,} bytes" if length is not None else ""
    what = f"HTTP 206 with Content-Range {quoted(said)}{size}" if status == 206 else f"HTTP {status}{size}"
    raise refusals.no_range(what, span.first, span.last, place=place)


def _read(response: Response, most: int, length: int | None, *, place: str) -> bytes:
    """The body, which must have `length` bytes where that is known and at most `most`."""
    if length is not None and length > most:
        raise refusals.too_long(length, most, place=place)
    raw = bytearray()
    for chunk in _timed(response, raw, place=place):
        raw += chunk
        if len(raw) > most:
            raise refusals.too_long(None, most, place=place)
    if length is not None and len(raw) < length:
        raise LinkError(Broken.CUT_OFF)
    return bytes(raw)


def _timed(response: Response, raw: bytearray, *, place: str) -> Iterator[bytes]:
    began = time.monotonic()
    for chunk in response.iter_raw():
        yield chunk
        if time.monotonic() - began > MOST_SECONDS:
            raise refusals.too_slow(MOST_SECONDS, len(raw), place=place)
