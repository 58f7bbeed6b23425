"""The Hub's own library: endpoint, token, HTTP client, cache. The only module that imports it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from modelbones.checkpoint.connections import Connections
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
    from huggingface_hub import constants

    endpoint = str(constants.ENDPOINT)
    return Link(
        client=Connections() if is_plain(endpoint) else _librarys_client(),
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
    from huggingface_hub import constants

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        token = _stored_token()
    except (OSError, ValueError):
        raise SourceError(place="HF_TOKEN", found="the stored token cannot be read", fix="log in again") from None
    if token is None:
        return None
    text = str(token)
    if not text.isascii() or not text.isprintable():
        raise SourceError(place="HF_TOKEN", found="characters that no token has", fix="set it again, or unset it")
    return text


def _stored_token() -> Any:
    """As the library's `get_token`, which is asked only where there is more to it than one variable."""
    from huggingface_hub import constants

    has_more = "HF_OIDC_RESOURCE" in os.environ or "google.colab" in sys.modules
    if not has_more and (token := os.environ.get("HF_TOKEN", "").strip()):
        return token
    if not has_more and "HUGGING_FACE_HUB_TOKEN" not in os.environ and not Path(constants.HF_TOKEN_PATH).exists():
        return None
    from huggingface_hub import get_token

    return get_token()


def is_plain(endpoint: str) -> bool:
    """Whether plain connections reach the Hub as the library's client would.

    They do not through a proxy, not where certificates are not in files (macOS, Windows), and
    not in a program that has loaded the library, as it may have set a client of its own.
    """
    proxies = ("http_proxy", "https_proxy", "all_proxy")
    return (
        sys.platform == "linux"
        and not any(os.environ.get(name) or os.environ.get(name.upper()) for name in proxies)
        and "huggingface_hub.utils._http" not in sys.modules
        and "@" not in endpoint
    )


def _librarys_client() -> Client:
    """The library's session as our client: its failures are told apart, none leaves as its own."""
    from huggingface_hub import get_session

    try:
        session = get_session()
    except (ImportError, ValueError):
        found = "http_proxy, https_proxy or all_proxy names a proxy that cannot be used"
        raise SourceError(place="the environment", found=found, fix="correct it, or unset it") from None
    package = next(kind.__module__ for kind in type(session).__mro__ if kind.__name__ == "Client").partition(".")[0]
    library = import_module(package)

    @contextmanager
    def get(url: str, headers: Mapping[str, str], timeout_s: float) -> Iterator[Response]:
        try:
            with session.stream("GET", url, headers=headers, follow_redirects=False, timeout=timeout_s) as response:
                yield response
        except library.TimeoutException:
            raise LinkError(Broken.SLOW) from None
        except (library.ConnectError, library.UnsupportedProtocol, library.ProxyError, library.InvalidURL) as error:
            is_untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            raise LinkError(Broken.UNTRUSTED if is_untrusted else Broken.UNREACHABLE) from None
        except library.HTTPError:
            raise LinkError(Broken.CUT_OFF) from None

    return get
