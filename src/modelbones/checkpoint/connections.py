"""A plain HTTP client on the standard library: kept connections, no proxies, a third of the usual CPU time.

A check of 120 files is some 240 requests. Through the Hub's own client they take 0.3 s of a
processor, its import included; the connection's waiting is what should be left.
"""

from __future__ import annotations

import ssl
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import local
from urllib.parse import quote, urlsplit

from modelbones.checkpoint.link import Broken, LinkError, Response

CHUNK_BYTES = 256 * 1024
_KEPT = string.punctuation
"""Characters of an address that stand for themselves; spaces and letters beyond ASCII are escaped."""


class _Answer:
    def __init__(self, response: HTTPResponse) -> None:
        self.status_code = response.status
        self.headers: Mapping[str, str] = {key.lower(): value for key, value in response.getheaders()}
        self._response = response

    def iter_raw(self) -> Iterator[bytes]:
        while chunk := self._response.read1(CHUNK_BYTES):
            yield chunk


class Connections:
    """A `link.Client`: each thread keeps one connection to each server it asked."""

    def __init__(self) -> None:
        self._kept = local()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The system's certificates; SSL_CERT_FILE and SSL_CERT_DIR name others."""
        return ssl.create_default_context()

    @contextmanager
    def __call__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> Iterator[Response]:
        """The answer to GET, or a LinkError; a connection whose answer is not read to its end is closed."""
        connection = self._connection(url, timeout_s)
        is_whole = False
        try:
            response = _ask(connection, url, headers)
            yield _Answer(response)
            if response.length == 0:
                response.read()  # ends it: the connection may be asked again
            is_whole = response.isclosed() and not response.will_close
        except TimeoutError:
            raise LinkError(Broken.SLOW) from None
        except (OSError, HTTPException):
            raise LinkError(Broken.CUT_OFF) from None
        finally:
            if not is_whole:
                self._kept.__dict__.pop(_server(url), None)
                connection.close()

    def _connection(self, url: str, timeout_s: float) -> HTTPConnection:
        """The thread's open connection to the server of `url`."""
        try:
            server = _server(url)
            kept: HTTPConnection | None = self._kept.__dict__.get(server)
            if kept is not None and kept.timeout == timeout_s:
                return kept
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            if parts.scheme == "https":
                made: HTTPConnection = HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
            else:
                made = HTTPConnection(host, port, timeout=timeout_s)
            made.connect()
        except TimeoutError:
            raise LinkError(Broken.SLOW) from None
        except ssl.SSLCertVerificationError:
            raise LinkError(Broken.UNTRUSTED) from None
        except (OSError, HTTPException, ValueError):
            raise LinkError(Broken.UNREACHABLE) from None
        self._kept.__dict__[server] = made
        return made


def _server(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _ask(connection: HTTPConnection, url: str, headers: Mapping[str, str]) -> HTTPResponse:
    parts = urlsplit(url)
    target = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
    try:
        connection.request("GET", target, headers=dict(headers))
        return connection.getresponse()
    except ValueError:
        raise HTTPException from None
