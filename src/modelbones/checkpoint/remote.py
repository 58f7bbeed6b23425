"""A repository of the Hub at one commit: its small files whole, of its checkpoint the headers alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from urllib.parse import quote

import orjson

from modelbones.checkpoint import hub
from modelbones.checkpoint.census import Census
from modelbones.checkpoint.fetch import Fetcher
from modelbones.checkpoint.fileset import ENDING, from_listing
from modelbones.checkpoint.index import INDEX_CAP, SUFFIX, why_refused
from modelbones.checkpoint.reading import no_collection, take_census
from modelbones.checkpoint.reference import Reference
from modelbones.checkpoint.refusals import NOT_THERE, not_a_hub, too_long
from modelbones.checkpoint.remote_headers import MOST_AT_ONCE, RemoteHeaders
from modelbones.checkpoint.stored import Forms
from modelbones.checkpoint.workers import Workers
from modelbones.errors import SourceError

LISTING_CAP = 64 * 1024 * 1024
"""The longest answer about a repository that is read."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
Progress = Callable[[int, int], None]
"""Told how many files of how many are read."""


class Repository:
    """What a reference leads to, fixed to the commit it led to when it was opened.

    A file that the cache holds at this commit is read there.
    """

    def __init__(self, reference: Reference, fetcher: Fetcher) -> None:
        """Ask the Hub which commit `reference` is, and which files it has."""
        self.reference = reference
        self._fetcher = fetcher
        self._workers = Workers(MOST_AT_ONCE)
        self.commit, self.files = self._resolve()
        self._snapshot = hub.cached_snapshot(reference, self.commit)
        self._begun: dict[str, Future[bytes]] = {}
        self._headers = RemoteHeaders(
            fetcher=fetcher,
            workers=self._workers,
            url_of=self.url,
            prefix=str(reference),
            files=frozenset(self.files),
            snapshot=self._snapshot,
        )

    def _resolve(self) -> tuple[str, tuple[str, ...]]:
        reference, place = self.reference, str(self.reference)
        revision = quote(reference.revision, safe="")
        url = f"{self._fetcher.link.endpoint}/api/models/{reference.repository}/revision/{revision}"
        raw = self._fetcher.whole(url, place=place, most_bytes=LISTING_CAP)
        try:
            answer = orjson.loads(raw)
            commit, siblings = answer["sha"], answer["siblings"]
            files = tuple(sorted(sibling["rfilename"] for sibling in siblings))
            is_good = _COMMIT.fullmatch(commit) is not None and set(map(type, files)) <= {str}
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            is_good = False
        if not is_good:
            raise not_a_hub("an answer without a commit and files", place=place)
        return commit, tuple(file for file in files if why_refused(file) is None)

    def url(self, name: str) -> str:
        """Where a file is asked for."""
        return f"{self._fetcher.link.endpoint}/{self.reference.repository}/resolve/{self.commit}/{quote(name)}"

    def place(self, name: str) -> str:
        """A file's name in messages."""
        return f"{self.reference}/{name}"

    def read(self, name: str, *, most_bytes: int) -> bytes:
        """A small file, whole; a SourceError where there is none."""
        if name in self._begun:
            return self._begun[name].result()
        return self._fetch(name, most_bytes)

    def _fetch(self, name: str, most_bytes: int) -> bytes:
        if name not in self.files:
            found, _ = NOT_THERE
            raise SourceError(place=self.place(name), found=found, fix="name the repository of a model")
        cached = self._cached(name, most_bytes)
        if cached is not None:
            return cached
        return self._fetcher.whole(self.url(name), place=self.place(name), most_bytes=most_bytes)

    def _cached(self, name: str, most_bytes: int) -> bytes | None:
        if self._snapshot is None:
            return None
        try:
            with (self._snapshot / name).open("rb") as file:
                raw = file.read(most_bytes + 1)
        except OSError:
            return None
        if len(raw) > most_bytes:
            raise too_long(None, most_bytes, place=self.place(name))
        return raw

    def begin(self, small: Mapping[str, int]) -> None:
        """Start asking for the index, the headers and `small` files: they come while something else is done.

        `small` maps their names to the most bytes each may have.
        """
        beside = self._beside()
        wanted = {**small, **{name: INDEX_CAP for name in beside if name.endswith(SUFFIX)}}
        for name, most_bytes in wanted.items():
            if name in self.files:
                self._begun[name] = self._workers.submit(partial(self._fetch, name, most_bytes))
        self._headers.begin([name for name in beside if name.endswith(ENDING)])

    def _beside(self) -> list[str]:
        """Files at the repository's top; hidden ones are none of ours."""
        return [name for name in self.files if "/" not in name and not name.startswith(".")]

    def census(self, progress: Progress | None = None) -> Census:
        """What the checkpoint stores, by its headers, as `read_checkpoint` tells it of a directory.

        Raises:
            SourceError: The Hub does not give what is asked for; or it holds no checkpoint.
        """
        place = str(self.reference)
        self._headers.progress = progress
        with no_collection():
            source = from_listing(self._beside(), self._read_index, place=place, where="in the repository")
            return take_census(source, self._headers.open_all, place=place)

    def names_in(self, name: str) -> tuple[str, ...]:
        """The tensors one file names, by its header; none where it has no good one."""
        self._headers.progress = None
        for _, opened in self._headers.open_all([name], Forms()):
            if isinstance(opened, tuple):
                return opened[0].names
        return ()

    def _read_index(self, name: str) -> bytes:
        return self.read(name, most_bytes=INDEX_CAP)

    def close(self) -> None:
        """Ask for nothing more."""
        self._fetcher.stopped.set()
        self._workers.close()


def open_repository(reference: Reference, *, user_agent: str) -> Repository:
    """The repository `reference` names, over the Hub that HF_ENDPOINT names; `user_agent` says who asks."""
    return Repository(reference, Fetcher(link=hub.connect(user_agent), revision=reference.revision))
