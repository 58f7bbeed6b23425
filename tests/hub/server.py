"""A Hub on 127.0.0.1: its routes, served from directories, and a second server its redirects lead to.

    python -m tests.hub.server owner/name=FOLDER [--delay SECONDS] [--direct]

prints the address of the first server and serves until its standard input ends.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = (".safetensors", ".safetensors.index.json")
"""What the Hub keeps elsewhere and answers with a redirect."""


@dataclass
class Repo:
    """One repository.

    `access` is "public", "private" (unknown without the token), "gated" or "disabled".
    """

    folder: Path
    commit: str = COMMIT
    revisions: tuple[str, ...] = ("main", "v1.0", "refs/pr/1")
    access: str = "public"
    token: str = "hf_good"

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


@dataclass
class Asked:
    """A request as a server saw it."""

    server: str
    path: str
    headers: dict[str, str]


Act = Callable[["Handler"], None]


@dataclass
class Fault:
    """Answers instead of the server, for paths that hold `path`, at most `times` times."""

    path: str
    act: Act
    times: int = 1_000_000


@dataclass
class FakeHub:
    """Both servers, what they serve and what they were asked."""

    repos: dict[str, Repo]
    delay_s: float = 0.0
    is_direct: bool = False
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.hub, self.cdn = (_server(self, kind) for kind in (HubHandler, CdnHandler))
        self.endpoint, self.cdn_address = (f"http://127.0.0.1:{each.server_port}" for each in (self.hub, self.cdn))

    def close(self) -> None:
        for each in (self.hub, self.cdn):
            each.shutdown()
            each.server_close()

    def fault(self, path: str, act: Act, times: int = 1_000_000) -> None:
        self.faults.append(Fault(path, act, times))

    def paths(self, part: str = "") -> list[str]:
        return [each.path for each in self.asked if part in each.path]


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True
    fake: FakeHub

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients hang up on purpose."""


def _server(fake: FakeHub, kind: type[Handler]) -> _Server:
    server = _Server(("127.0.0.1", 0), kind)
    server.fake = fake
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


class Handler(BaseHTTPRequestHandler):
    """What both servers share."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    name = ""

    @property
    def fake(self) -> FakeHub:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def do_GET(self) -> None:
        fake = self.fake
        with fake.lock:
            fake.asked.append(Asked(self.name, self.path, dict(self.headers)))
            fault = next((each for each in fake.faults if each.times and each.path in f"{self.name}{self.path}"), None)
            if fault is not None:
                fault.times -= 1
        if fake.delay_s:
            time.sleep(fake.delay_s)
        if fault is not None:
            fault.act(self)
        else:
            self.serve(unquote(self.path.partition("?")[0]))

    def do_HEAD(self) -> None:
        self.do_GET()

    def serve(self, path: str) -> None:
        raise NotImplementedError

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """One answer; `X_Error_Code` becomes X-Error-Code."""
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        named.setdefault("Content-Length", str(len(body)))
        lines = [f"HTTP/1.1 {status} Said", *(f"{key}: {value}" for key, value in named.items())]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + (b"" if self.command == "HEAD" else body))

    def refuse(self, status: int, code: str = "", message: str = "") -> None:
        headers = {"X_Error_Code": code} if code else {}
        self.answer(status, json.dumps({"error": message}).encode(), **headers, X_Error_Message=message)

    def send_file(self, path: Path, **headers: str) -> None:
        size = path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
        if asked and first >= size:
            self.answer(416, Content_Range=f"bytes */{size}")
            return
        if self.command == "HEAD":
            self.answer(200, Content_Length=str(size), **headers)
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            body = os.pread(handle, last - first + 1, first)
        finally:
            os.close(handle)
        if asked:
            self.answer(206, body, Content_Range=f"bytes {first}-{last}/{size}", **headers)
        else:
            self.answer(200, body, **headers)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class HubHandler(Handler):
    """The Hub: resolves revisions, serves small files, redirects to large ones."""

    name = "hub"

    def serve(self, path: str) -> None:
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path)
        resolve = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([0-9a-f]{40}|main)/(.+)", path)
        match = api or resolve
        repo = self.permitted(match[1]) if match else None
        if match is None:
            self.refuse(404, message="Not Found")
        elif repo is not None and match[2] not in (*repo.revisions, repo.commit):
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {match[2]}")
        elif repo is not None and api:
            siblings = [{"rfilename": name} for name in repo.files()]
            body = {"id": match[1], "sha": repo.commit, "siblings": siblings}
            self.answer(200, json.dumps(body).encode(), Content_Type="application/json")
        elif repo is not None:
            self.resolve(match[1], repo, match[3])

    def permitted(self, name: str) -> Repo | None:
        """The repository, or None after a refusal."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        repo = self.fake.repos.get(name)
        if token and not token.startswith("hf_"):
            self.refuse(401, message="Invalid credentials in Authorization header")
        elif repo is None or (repo.access == "private" and token != repo.token):
            self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        elif repo.access == "gated" and token != repo.token:
            self.refuse(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted.")
        elif repo.access == "disabled":
            self.refuse(403, message="Access to this resource is disabled.")
        else:
            return repo
        return None

    def resolve(self, name: str, repo: Repo, file: str) -> None:
        path = repo.folder / file
        if not path.is_file():
            self.refuse(404, "EntryNotFound", "Entry not found")
            return
        digest = hashlib.sha256(file.encode()).hexdigest()
        known = {"X_Repo_Commit": repo.commit, "ETag": f'"{digest[:40]}"'}
        if file.endswith(LARGE) and not self.fake.is_direct:
            large = {"X_Linked_Size": str(path.stat().st_size), "X_Linked_ETag": f'"{digest}"'}
            location = f"{self.fake.cdn_address}/{name}/{file}?signature={digest[:16]}"
            self.answer(302, f"Found. Redirecting to {location}".encode(), Location=location, **known, **large)
        else:
            self.send_file(path, **known)


class CdnHandler(Handler):
    """Where the Hub's redirects lead."""

    name = "cdn"

    def serve(self, path: str) -> None:
        owner, name, file = path.removeprefix("/").split("/", 2)
        self.send_file(self.fake.repos[f"{owner}/{name}"].folder / file)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("repo", help="owner/name=FOLDER")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds every answer waits")
    parser.add_argument("--direct", action="store_true", help="answer large files without a redirect")
    args = parser.parse_args()
    name, _, folder = args.repo.partition("=")
    fake = FakeHub({name: Repo(Path(folder))}, delay_s=args.delay, is_direct=args.direct)
    print(fake.endpoint, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
