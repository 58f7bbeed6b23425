"""Why the Hub did not give what was asked for: its answers and silences in our words."""

from __future__ import annotations

from collections.abc import Mapping

from modelbones.checkpoint.link import Broken
from modelbones.checkpoint.quote import quoted
from modelbones.errors import SourceError

_LATER = "try again later"
_DISABLED = "Access to this resource is disabled."
_BY_CODE = {
    ("GatedRepo", False): ("gated, and no token was sent", "ask for access on its page, then set HF_TOKEN"),
    ("GatedRepo", True): ("gated, and this token has no access", "ask for access on its page, or use another token"),
    ("RepoNotFound", False): (
        "no such repository, or a private one and no token was sent",
        "check the name, or set HF_TOKEN",
    ),
    ("RepoNotFound", True): (
        "no such repository, or a private one that this token may not read",
        "check the name and the token",
    ),
    ("Token", True): ("the Hub refused the token", "set HF_TOKEN to a valid one, or unset it"),
}
"""(X-Error-Code, whether a token was sent) -> (what was found, what to do)."""
NOT_THERE = ("not in the repository", "upload it, or write the index again")


class EntryMissingError(SourceError):
    """The repository has no such file at this revision."""


def refused(status: int, headers: Mapping[str, str], *, place: str, revision: str, has_token: bool) -> SourceError:
    """What a status that is no success means."""
    code = headers.get("x-error-code", "")
    if code == "EntryNotFound":
        found, fix = NOT_THERE
        return EntryMissingError(place=place, found=found, fix=fix)
    found, fix = _words(status, code, headers, revision, has_token)
    return SourceError(place=place, found=found, fix=fix)


def _words(status: int, code: str, headers: Mapping[str, str], revision: str, has_token: bool) -> tuple[str, str]:
    if code == "RevisionNotFound":
        return f"no revision {quoted(revision)} in this repository", "name a branch, a tag or a commit"
    if headers.get("x-error-message") == _DISABLED:
        return "disabled by the Hub", "name another repository"
    if not code and status in (401, 404):
        # Without a token, what is missing and what is private look alike.
        code = "RepoNotFound" if not has_token else "" if status == 404 else "Token"
    other = f"the Hub answered HTTP {status}", "check the name, the token and HF_ENDPOINT"
    return _BY_CODE.get((code, has_token), other)


def rate_limited(wait_s: float | None, *, place: str, has_token: bool) -> SourceError:
    """Too many requests, and the wait is longer than a person would sit through."""
    asked = "" if wait_s is None else f"; the Hub asks to wait {wait_s:,.0f} s"
    fix = _LATER if has_token else "try again later, or set HF_TOKEN: its limit is higher"
    return SourceError(place=place, found=f"too many requests (HTTP 429){asked}", fix=fix)


def failing(status: int, tries: int, *, place: str) -> SourceError:
    """A server that fails again and again."""
    return SourceError(place=place, found=f"the Hub failed {tries} times (HTTP {status})", fix=_LATER)


def broken_link(broken: Broken, tries: int, *, place: str, server: str, timeout_s: float) -> SourceError:
    """A connection that gave no answer."""
    if broken is Broken.UNREACHABLE:
        found = f"{server} cannot be reached"
        fix = "check the connection and HF_ENDPOINT, or set HF_HUB_OFFLINE=1 to read what is cached"
        return SourceError(place=place, found=found, fix=fix)
    if broken is Broken.UNTRUSTED:
        found = f"the certificate of {server} is not trusted here"
        return SourceError(place=place, found=found, fix="set SSL_CERT_FILE to the certificates of whoever signed it")
    if broken is Broken.SLOW:
        found = f"the Hub was silent for {timeout_s:g} s, {tries} times"
        return SourceError(place=place, found=found, fix="try again later, or raise HF_HUB_DOWNLOAD_TIMEOUT")
    return SourceError(place=place, found=f"the answer was cut off, {tries} times", fix=_LATER)


def too_slow(seconds: float, got: int, *, place: str) -> SourceError:
    """A body that comes, and not fast enough to end."""
    found = f"only {got:,} bytes came in {seconds:,.0f} s"
    return SourceError(place=place, found=found, fix=_LATER)


def too_long(length: int | None, most: int, *, place: str) -> SourceError:
    """A body that passes its cap."""
    found = f"more than {most:,} bytes" if length is None else f"{length:,} bytes; expected at most {most:,}"
    return SourceError(place=place, found=found, fix="name the repository of a model")


def no_range(what: str, first: int, last: int, *, place: str) -> SourceError:
    """A server that gave something else than the bytes it was asked for."""
    found = f"{what}; expected HTTP 206 with bytes {first:,} to {last:,}"
    return SourceError(place=place, found=found, fix="use a server that gives ranges")


def bad_redirect(what: str, *, place: str) -> SourceError:
    """A redirect that must not be followed."""
    return SourceError(place=place, found=f"a redirect {what}", fix="check HF_ENDPOINT")


def not_a_hub(what: str, *, place: str) -> SourceError:
    """An answer no Hub gives."""
    return SourceError(place=place, found=f"{what}; expected what the Hub answers", fix="check HF_ENDPOINT")
