"""`modelbones explain`: exact words for one GLM-5.3-Flash log (glm-10), JSON, exit codes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.running import Cli

LOG = Path(__file__).parent / "glm_5_3_flash.log"
"""The published figures of glm-10: TP4, bf16, 131,072 tokens, 47.29 GiB on each rank."""
TEXT = """\
  log      -
  engine   vLLM 0.1.dev20051+g487ecf187
  model    glm-5.3-flash (in the log: zai-org/GLM-5.3-Flash)
  start    tp 4, kv dtype auto, context 131,072, prefix caching on
  assumed  compute capability 9 (H100, H200): the log does not say
  verdict  all 4 figures match

Figures
  figure                               logged          computed  verdict
  -------------------------  ----------------  ----------------  -------
  attention block size           1,152 tokens      1,152 tokens  matches
  mamba page padding                   8.68 %            8.68 %  matches
  available KV cache memory         47.29 GiB                 -  -
  GPU KV cache size          4,039,788 tokens  4,039,788 tokens  matches
  maximum concurrency                  30.82x            30.82x  matches

What they say
attention block size: One attention page must hold one layer's recurrent state,
  1,085,440 bytes, so a block is 1,152 tokens. Memory and cache hits come in
  steps of that many tokens.
mamba page padding: A recurrent page is stretched from 1,085,440 to 1,179,648
  bytes; the 94,208 bytes hold nothing.
available KV cache memory: Each worker prints its own; the pool is made of the
  smallest, on every rank. 3,791 blocks of 13,394,304 bytes are made of it.
GPU KV cache size: Not a pool: 30.82 requests x 131,072 tokens. It changes with
  the longest context; only requests of that length add up to it, shorter ones
  and idle cache hold less.
maximum concurrency: 3,791 blocks / 123 that one request of 131,072 tokens
  holds. Whole requests: 30.

What a request holds, on each rank
  one block id            12.77 MiB (13,394,304 bytes)
  before its first token  9 blocks, 114.96 MiB (120,548,736 bytes), whatever its
                          length
  at 131,072 tokens       123 blocks, 1.53 GiB (1,647,499,392 bytes)
  of these                114 latent, 1 tail, 8 recurrent (4 groups)
  what binds              latent: 114 of 123 blocks; up to 10,368 tokens the
                          fixed blocks are at least half
  at once                 30 such requests in 3,790 blocks
  idle cache              5 block ids for each 1,152 tokens (1 latent, 4
                          recurrent): the pool keeps 873,216 tokens, not
                          4,039,788, with a state at every step
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_log_of_a_known_repository_needs_no_model(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, LOG.read_bytes())
    ran = run("explain", "-")
    assert (ran.code, ran.out, ran.err) == (0, TEXT, "")


def test_json_has_the_names_others_rely_on(run: Cli) -> None:
    data = run("explain", LOG, "--json").data
    assert data["schema"] == "modelbones/explain/1"
    assert {tuple(figure) for figure in data["figures"]} == {
        ("name", "logged", "computed", "matches", "meaning", "reason")
    }
    assert [(figure["name"], figure["logged"], figure["matches"]) for figure in data["figures"]] == [
        ("block_tokens", 1152, True),
        ("padding_percent", 8.68, True),
        ("available_memory_gib", 47.29, None),
        ("cache_tokens", 4_039_788, True),
        ("concurrency", 30.82, True),
    ]
    held = data["held"]
    assert (held["fixed_blocks"], held["fixed_bytes"], held["binds"]) == (9, 120_548_736, "latent")
    assert (held["idle_step"], held["idle_blocks"], held["idle_tokens"]) == (1152, 5, 873_216)
    assert data["engine"] == {"name": "vllm", "version": "0.1.dev20051+g487ecf187", "rules": "0.1.dev20051"}
    assert data["model"] == "glm-5.3-flash"


def test_a_figure_that_differs_is_exit_1_with_its_reason(run: Cli) -> None:
    ran = run("explain", LOG, "--engine", "vllm@0.33", "--format", "md")
    assert ran.code == 1
    assert "| GPU KV cache size | 4,039,788 tokens | 3,906,358 tokens | differs |" in ran.out
    assert "the rules of 0.30.0 and 0.31.0 and 0.1.dev20051 give every figure: likeliest the build has those" in ran.out


def test_a_log_of_an_unknown_model_asks_for_it_and_is_exit_0(run: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_bytes(LOG.read_bytes().replace(b"zai-org/GLM-5.3-Flash", b"/models/mine"))
    ran = run("explain", other)
    assert ran.code == 0
    assert 'a config for the model the log names "/models/mine": modelbones explain LOG MODEL' in " ".join(
        ran.out.split()
    )
    assert "verdict  nothing to compare" in ran.out
    assert run("explain", other, "glm-5.3-flash").out.count("matches") == 4


def test_a_path_the_log_names_is_read_where_it_is(run: Cli, tmp_path: Path) -> None:
    assert run("synth", "glm-5.3-flash", tmp_path / "mine", "--shrink").code == 0
    other = tmp_path / "other.log"
    other.write_bytes(LOG.read_bytes().replace(b"zai-org/GLM-5.3-Flash", bytes(tmp_path / "mine")))
    assert run("explain", other, "--json").data["model"] == str(tmp_path / "mine")


def test_flags_stand_in_for_lines(run: Cli, tmp_path: Path) -> None:
    """glm-11: 440 blocks of 6 GiB with 3 tokens drafted by the MTP layer."""
    log = tmp_path / "part.log"
    log.write_text("INFO GPU KV cache size: 443,628 tokens\nINFO # GPU blocks: 440\n")
    flags = ("--engine", "vllm@0.31", "--tp", "4", "--spec", "mtp:3", "--context", "128k", "--prefix-caching", "on")
    figures = run("explain", log, "glm-5.3-flash", *flags, "--kv-dtype", "auto", "--json").data["figures"]
    assert [(figure["computed"], figure["matches"]) for figure in figures] == [(None, None), (443_628, True)]


def test_a_drafter_is_named_by_its_config(run: Cli, tmp_path: Path) -> None:
    log = tmp_path / "draft.log"
    line = LOG.read_text().replace(
        "speculative_config=None",
        "speculative_config=SpeculativeConfig(method='draft_model', model='d', num_spec_tokens=2)",
    )
    log.write_text(line.replace("zai-org/GLM-5.3-Flash", "Qwen/Qwen3-30B-A3B"))
    assert "the states of the drafter d (draft_model): --spec draft:CONFIG" in run("explain", log).out
    assert run("explain", log, "--spec", "draft:qwen3-8b", "--json").data["needed"] == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no start-up line of vLLM in it"),
        (b"\x00\xff" * 500, "no start-up line of vLLM in it"),
        (b"KV Cache is allocated. #tokens: 5,890,560, KV size: 32.89 GB", "no start-up line of vLLM in it"),
    ],
)
def test_a_log_without_a_line_of_the_engine_is_exit_3(run: Cli, tmp_path: Path, data: bytes, words: str) -> None:
    log = tmp_path / "serve.log"
    log.write_bytes(data)
    ran = run("explain", log)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        f"modelbones: {log}: {words}; name a log of a vLLM start, with its lines of the KV cache; "
        "other engines' lines are not read\n"
    )


def test_a_log_that_is_not_there_is_exit_3(run: Cli, tmp_path: Path) -> None:
    assert run("explain", tmp_path / "none.log").code == 3
    assert run("explain", tmp_path).code == 3
    assert run("explain", "a\x00b").code == 3


@pytest.mark.parametrize(
    "flags",
    [
        ("--engine", "sglang"),
        ("--assume", "9"),
        ("--capability", "11"),
        ("--spec", "mtp:0"),
        ("--spec", "eagle:3"),
        ("--tp", "0"),
        ("--kv-dtype", "int4"),
    ],
)
def test_a_wrong_flag_is_exit_2(run: Cli, flags: tuple[str, str]) -> None:
    ran = run("explain", LOG, *flags)
    assert (ran.code, ran.out) == (2, "")
