"""What the Hub refuses, and every way an answer can go wrong: one line, our words, exit 3."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from modelbones.checkpoint import fetch, remote
from tests.cli.running import Cli
from tests.hub.conftest import constants
from tests.hub.server import Act, FakeHub, Handler, Repo

TWO = "model-00002-of-00003.safetensors"
PLACE = "org/tiny@main"
SHARD = f"{PLACE}/{TWO}"
ASKED = "expected HTTP 206 with bytes 0 to 2,097,151; use a server that gives ranges"


def refused(run: Cli, model: str = "org/tiny") -> str:
    """The one line on standard error."""
    ran = run("check", model)
    assert (ran.code, ran.out) == (3, ""), ran.err
    assert ran.err.startswith("modelbones: ")
    assert ran.err.count("\n") == 1
    return ran.err.removeprefix("modelbones: ").rstrip("\n")


def test_a_repository_that_is_not_there(hub: FakeHub, run: Cli) -> None:
    assert refused(run, "org/none") == (
        "org/none@main: no such repository, or a private one and no token was sent; check the name, or set HF_TOKEN"
    )


def test_a_repository_that_is_not_there_for_this_token(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    assert refused(run, "org/none") == (
        "org/none@main: no such repository, or a private one that this token may not read; check the name and the token"
    )


def test_a_private_repository(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["org/tiny"].access = "private"
    assert refused(run) == (
        f"{PLACE}: no such repository, or a private one and no token was sent; check the name, or set HF_TOKEN"
    )
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    assert run("check", "org/tiny").code == 0


def test_a_gated_repository(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["org/tiny"].access = "gated"
    assert refused(run) == f"{PLACE}: gated, and no token was sent; ask for access on its page, then set HF_TOKEN"
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    assert refused(run) == (
        f"{PLACE}: gated, and this token has no access; ask for access on its page, or use another token"
    )
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    assert run("check", "org/tiny").code == 0


def test_a_disabled_repository(hub: FakeHub, run: Cli) -> None:
    hub.repos["org/tiny"].access = "disabled"
    assert refused(run) == f"{PLACE}: disabled by the Hub; name another repository"


def test_a_token_that_is_refused(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "nonsense")
    assert refused(run) == f"{PLACE}: the Hub refused the token; set HF_TOKEN to a valid one, or unset it"


def test_a_token_no_header_can_hold(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_gööd")
    assert refused(run) == "HF_TOKEN: characters that no token has; set it again, or unset it"


def test_a_revision_that_is_not_there(hub: FakeHub, run: Cli) -> None:
    assert refused(run, "org/tiny@v9") == (
        'org/tiny@v9: no revision "v9" in this repository; name a branch, a tag or a commit'
    )


def test_a_repository_without_a_config(hub: FakeHub, run: Cli, folder: Path) -> None:
    (folder / "config.json").unlink()
    line = f"{PLACE}/config.json: not in the repository; name the repository of a model"
    assert refused(run) == line
    assert run("show", "org/tiny").err == f"modelbones: {line}\n"


def test_a_repository_without_weights(hub: FakeHub, run: Cli, folder: Path) -> None:
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    assert refused(run) == f"{PLACE}: no *.safetensors file in it; name the checkpoint's directory"


def test_a_broken_config_is_placed(hub: FakeHub, run: Cli, folder: Path) -> None:
    (folder / "config.json").write_text("{")
    assert refused(run) == f"{PLACE}/config.json: no valid JSON at line 1, column 2; correct it or fetch it again"


def test_an_unknown_architecture_exits_4(hub: FakeHub, run: Cli, folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "never_heard_of"}')
    ran = run("check", "org/tiny")
    assert ran.code == 4
    assert ran.err.startswith(f'modelbones: {PLACE}/config.json: unknown architecture "never_heard_of"')


# --- servers that fail, wait and stop ------------------------------------------------------------


def status(code: int, **headers: str) -> Act:
    return lambda handler: handler.answer(code, b"{}", **headers)


def test_rate_limited_for_longer_than_anyone_waits(hub: FakeHub, run: Cli) -> None:
    hub.fault("/api/models", status(429, Retry_After="300"))
    assert refused(run) == (
        f"{PLACE}: too many requests (HTTP 429); the Hub asks to wait 300 s; "
        "try again later, or set HF_TOKEN: its limit is higher"
    )
    assert len(hub.asked) == 1


def test_rate_limited_says_its_reset_in_a_header_of_its_own(
    hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    hub.fault("/api/models", status(429, RateLimit='"api";r=0;t=55'))
    assert refused(run) == (f"{PLACE}: too many requests (HTTP 429); the Hub asks to wait 55 s; try again later")


def test_a_short_wait_is_waited(hub: FakeHub, run: Cli) -> None:
    hub.fault("/api/models", status(429, Retry_After="1"), times=1)
    hub.fault(TWO, status(429, Retry_After="0"), times=2)
    began = time.monotonic()
    assert run("check", "org/tiny").code == 0
    assert time.monotonic() - began >= 1


def test_rate_limited_again_and_again(hub: FakeHub, run: Cli) -> None:
    hub.fault(TWO, status(429, Retry_After="0"))
    assert refused(run) == (
        f"{SHARD}: too many requests (HTTP 429); the Hub asks to wait 0 s; "
        "try again later, or set HF_TOKEN: its limit is higher"
    )
    assert len(hub.paths(TWO)) == fetch.TRIES


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_server_that_fails_is_asked_again(hub: FakeHub, run: Cli, code: int) -> None:
    hub.fault(f"cdn/org/tiny/{TWO}", status(code), times=2)
    assert run("check", "org/tiny").code == 0


def test_a_server_that_fails_for_good(hub: FakeHub, run: Cli) -> None:
    hub.fault(TWO, status(503))
    assert refused(run) == f"{SHARD}: the Hub failed 3 times (HTTP 503); try again later"


def test_another_status(hub: FakeHub, run: Cli) -> None:
    hub.fault(TWO, status(418))
    assert refused(run) == f"{SHARD}: the Hub answered HTTP 418; check the name, the token and HF_ENDPOINT"


def test_a_hub_that_cannot_be_reached(hub: FakeHub, run: Cli) -> None:
    hub.close()
    assert refused(run) == (
        f"{PLACE}: {hub.endpoint} cannot be reached; "
        "check the connection and HF_ENDPOINT, or set HF_HUB_OFFLINE=1 to read what is cached"
    )


def silence(handler: Handler) -> None:
    time.sleep(0.6)
    handler.close_connection = True


def test_a_silent_server(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.fault(TWO, silence)
    assert refused(run) == (
        f"{SHARD}: the Hub was silent for 0.2 s, 3 times; try again later, or raise HF_HUB_DOWNLOAD_TIMEOUT"
    )


def trickle(handler: Handler) -> None:
    handler.answer(200, b"", Content_Length="1000")
    for _ in range(20):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def test_a_body_that_trickles_is_not_waited_for(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MOST_SECONDS", 0.2)
    hub.fault("config.json", trickle)
    line = refused(run)
    assert line.startswith(f"{PLACE}/config.json: only ")
    assert line.endswith(" bytes came in 0 s; try again later")


def cut_off(handler: Handler) -> None:
    handler.answer(206, b"\0" * 100, Content_Length="5000", Content_Range="bytes 0-4999/5000")
    handler.close_connection = True


def test_a_body_that_is_cut_off(hub: FakeHub, run: Cli) -> None:
    hub.fault(f"cdn/org/tiny/{TWO}", cut_off)
    assert refused(run) == f"{SHARD}: the answer was cut off, 3 times; try again later"


def test_a_body_that_is_cut_off_once(hub: FakeHub, run: Cli) -> None:
    hub.fault(f"cdn/org/tiny/{TWO}", cut_off, times=1)
    assert run("check", "org/tiny").code == 0


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


def test_a_connection_closed_without_an_answer(hub: FakeHub, run: Cli) -> None:
    hub.fault("/api/models", hang_up)
    assert refused(run) == f"{PLACE}: the answer was cut off, 3 times; try again later"


def test_words_that_are_no_http(hub: FakeHub, run: Cli) -> None:
    def answer(handler: Handler) -> None:
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        handler.close_connection = True

    hub.fault("/api/models", answer)
    assert refused(run) == f"{PLACE}: the answer was cut off, 3 times; try again later"


# --- servers that answer something else ----------------------------------------------------------


def test_a_server_that_ignores_ranges_is_not_downloaded(hub: FakeHub, run: Cli) -> None:
    sent = []

    def all_of_it(handler: Handler) -> None:
        handler.answer(200, b"\0" * 100, Content_Length="5368709120")
        try:
            for _ in range(1000):
                handler.wfile.write(b"\0" * 1_000_000)
                sent.append(1_000_000)
        except OSError:
            handler.close_connection = True

    hub.fault(f"cdn/org/tiny/{TWO}", all_of_it)
    assert refused(run) == f"{SHARD}: HTTP 200 and 5,368,709,120 bytes; {ASKED}"
    time.sleep(0.2)
    assert sum(sent) < 20_000_000


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ("bytes 1-1000/5000", 1000),
        ("bytes 0-1000/5000", 1001),
        ("bytes 0-4999/5001", 5000),
        ("bytes 0-4999/*", 5000),
        ("bytes 0-4999/5000", 4998),
        ("bytes=0-4999/5000", 5000),
        ("", 5000),
    ],
)
def test_another_range_than_was_asked_for(hub: FakeHub, run: Cli, said: str, length: int) -> None:
    headers = {"Content_Range": said} if said else {}
    hub.fault(f"cdn/org/tiny/{TWO}", lambda handler: handler.answer(206, b"\0" * length, **headers))
    assert refused(run) == f'{SHARD}: HTTP 206 with Content-Range "{said}" and {length:,} bytes; {ASKED}'


def test_a_compressed_body(hub: FakeHub, run: Cli) -> None:
    hub.fault("config.json", status(200, Content_Encoding="gzip"))
    assert refused(run) == (
        f"{PLACE}/config.json: a compressed body that was not asked for; expected what the Hub answers; "
        "check HF_ENDPOINT"
    )


@pytest.mark.parametrize("has_length", [True, False])
def test_a_config_without_end(hub: FakeHub, run: Cli, has_length: bool) -> None:
    cap = 64 * 1024 * 1024

    def endless(handler: Handler) -> None:
        if has_length:
            handler.answer(200, b"", Content_Length=str(10**12))
        else:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        handler.close_connection = True
        try:
            for _ in range(100):
                handler.wfile.write(b" " * 1_000_000)
        except OSError:
            return

    hub.fault("config.json", endless)
    found = f"1,000,000,000,000 bytes; expected at most {cap:,}" if has_length else f"more than {cap:,} bytes"
    assert refused(run) == f"{PLACE}/config.json: {found}; name the repository of a model"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"null", b"{}", b'{"sha":"main","siblings":[]}', b'{"sha":1,"siblings":[]}',
     b'{"sha":"%040d","siblings":[{"rfilename":1}]}' % 0, b'{"sha":"%040d","siblings":[1]}' % 0,
     b'{"sha":"%040d","siblings":null}' % 0],
)  # fmt: skip
def test_an_answer_that_is_no_hubs(hub: FakeHub, run: Cli, body: bytes) -> None:
    hub.fault("/api/models", lambda handler: handler.answer(200, body))
    assert refused(run) == (
        f"{PLACE}: an answer without a commit and files; expected what the Hub answers; check HF_ENDPOINT"
    )


def test_a_listing_without_end(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LISTING_CAP", 100)
    line = refused(run)
    assert line.startswith(f"{PLACE}: ")
    assert line.endswith(" bytes; expected at most 100; name the repository of a model")


# --- redirects and the token ---------------------------------------------------------------------


def redirect(location: str) -> Act:
    return lambda handler: handler.answer(302, Location=location)


def test_the_token_goes_to_the_hub_and_to_no_other_host(
    hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    hub.repos["org/tiny"].access = "private"
    assert run("check", "org/tiny").code == 0
    sent = {server: {each.headers.get("Authorization") for each in hub.asked if each.server == server}
            for server in ("hub", "cdn")}  # fmt: skip
    assert sent == {"hub": {"Bearer hf_good"}, "cdn": {None}}
    assert not any("hf_good" in f"{each.path}{each.headers}" for each in hub.asked if each.server == "cdn")


def test_the_token_stays_when_the_question_for_the_revision_is_sent_elsewhere(
    hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    hub.fault("/api/models", redirect(f"{hub.cdn_address}/api/elsewhere"))
    hub.fault("cdn/api/elsewhere", status(200))
    refused(run)
    assert [each.headers.get("Authorization") for each in hub.asked] == ["Bearer hf_good", None]


def test_another_port_or_name_of_the_same_machine_is_another_host(
    hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    hub.fault("/api/models/org/tiny", redirect(hub.endpoint.replace("127.0.0.1", "localhost") + "/elsewhere"))
    refused(run)
    assert [each.headers.get("Authorization") for each in hub.asked][:2] == ["Bearer hf_good", None]


def test_a_renamed_repository_is_followed(hub: FakeHub, run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    for path in ("/api/models/org/old/", "/org/old/resolve/"):
        hub.fault(path, lambda handler: handler.answer(307, Location=handler.path.replace("org/old", "org/tiny")))
    assert run("check", "org/old").code == 0
    assert {each.headers.get("Authorization") for each in hub.asked if each.server == "hub"} == {"Bearer hf_good"}


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("file:///etc/passwd", "to no address"),
        ("http://[::1", "to no address"),
        ("http://host:port/", "to no address"),
        ("ftp://127.0.0.1/x", "to no address"),
    ],
)
def test_a_redirect_to_nowhere(hub: FakeHub, run: Cli, location: str, found: str) -> None:
    hub.fault(TWO, redirect(location))
    assert refused(run) == f"{SHARD}: a redirect {found}; check HF_ENDPOINT"


@pytest.mark.parametrize(("path", "place"), [(TWO, SHARD), ("config.json", f"{PLACE}/config.json")])
def test_redirects_in_a_circle(hub: FakeHub, run: Cli, path: str, place: str) -> None:
    hub.fault(path, lambda handler: handler.answer(302, Location=handler.path))
    assert refused(run) == f"{place}: a redirect that leads on for 5 times; check HF_ENDPOINT"


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    with pytest.raises(fetch.SourceError, match="a redirect from https to http; check HF_ENDPOINT"):
        fetch._target("https://a/b", "http://a/b", place="x")


def test_a_repository_with_names_that_leave_it(hub: FakeHub, run: Cli, folder: Path) -> None:
    names = ["../x.safetensors", "/etc/y.safetensors", "config.json", *(path.name for path in folder.glob("*.saf*"))]
    siblings = ",".join(f'{{"rfilename":"{name}"}}' for name in names)
    body = f'{{"sha":"{Repo(folder).commit}","siblings":[{siblings}]}}'.encode()
    hub.fault("/api/models", lambda handler: handler.answer(200, body))
    assert run("check", "org/tiny").code == 0
    assert not hub.paths("x.safetensors")
