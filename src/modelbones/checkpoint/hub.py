"""The Hub's own library: endpoint, token, HTTP client, cache. The only module that imports it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from modelbones.checkpoint.link import Broken, Client, Link, LinkError, Response
from modelbones.checkpoint.reference import Reference
from modelbones.errors import ExtraMissingError, SourceError


def ensure_usable(reference: Reference) -> None:
    """Refuse a reference that nothing here can follow, and settings the library cannot be imported with.

    Raises:
        ExtraMissingError: The library is not installed.
        SourceError: A variable of the environment has no meaning.
    """
    if endpoint := os.environ.get("HF_ENDPOINT"):
        _ensure_address(endpoint)
    try:
        import huggingface_hub.constants  # noqa: F401
    except ImportError:
        raise ExtraMissingError(place=str(reference), module="huggingface_hub", extra="hub") from None
    except ValueError:
        found = "an HF_ variable of the environment holds a value of the wrong kind"
        raise SourceError(place=str(reference), found=found, fix="correct it, or unset it") from None


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids every request."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def cached_commit(reference: Reference) -> str | None:
    """The commit the cache knows the revision by; None where it knows none."""
    folder, revision = _cache(reference), reference.revision
    if (folder / "snapshots" / revision).is_dir() and "/" not in revision:
        return revision
    ref = folder / "refs" / revision
    try:
        commit = ref.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if commit.isalnum() else None


def cached_snapshot(reference: Reference, commit: str) -> Path | None:
    """The cache's directory of files at `commit`, some or all of them; None where it has none."""
    folder = _cache(reference) / "snapshots" / commit
    return folder if folder.is_dir() else None


def _cache(reference: Reference) -> Path:
    from huggingface_hub import constants

    owner, name = reference.repository.split("/")
    folder = str(constants.REPO_ID_SEPARATOR).join(("models", owner, name))
    return Path(str(constants.HF_HUB_CACHE)) / folder


def connect(user_agent: str) -> Link:
    """A link to the Hub that HF_ENDPOINT names, with the token of whoever is logged in.

    Raises:
        SourceError: The token is none.
    """
    from huggingface_hub import constants, get_session

    endpoint = str(constants.ENDPOINT)
    return Link(
        client=_client(get_session()),
        endpoint=endpoint,
        token=_token(),
        timeout_s=float(constants.HF_HUB_DOWNLOAD_TIMEOUT),
        user_agent=user_agent,
    )


def _ensure_address(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        found = "no address of a server; expected http:// or https:// and a host"
        raise SourceError(place="HF_ENDPOINT", found=found, fix="correct it, or unset it")


def _token() -> str | None:
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        token = get_token()
    except (OSError, ValueError):
        raise SourceError(place="HF_TOKEN", found="the stored token cannot be read", fix="log in again") from None
    if token is None:
        return None
    text = str(token)
    if not text.isascii() or not text.isprintable():
        raise SourceError(place="HF_TOKEN", found="characters that no token has", fix="set it again, or unset it")
    return text


def _client(session: Any) -> Client:
    """The Hub's session as our client: its failures are told apart, none leaves as its own."""
    package = next(kind.__module__ for kind in type(session).__mro__ if kind.__name__ == "Client").partition(".")[0]
    library = import_module(package)

    @contextmanager
    def get(url: str, headers: Mapping[str, str], timeout_s: float) -> Iterator[Response]:
        try:
            with session.stream("GET", url, headers=headers, follow_redirects=False, timeout=timeout_s) as response:
                yield response
        except library.TimeoutException:
            raise LinkError(Broken.SLOW) from None
        except (library.ConnectError, library.UnsupportedProtocol, library.ProxyError, library.InvalidURL):
            raise LinkError(Broken.UNREACHABLE) from None
        except library.HTTPError:
            raise LinkError(Broken.CUT_OFF) from None

    return get
