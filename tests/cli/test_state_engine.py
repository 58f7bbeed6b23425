"""`state --engine`: one sequence in each engine's own layout."""

from __future__ import annotations

import pytest

from tests.cli.running import Cli

M = 1_048_576
LENGTHS = (4096, 32_768, 131_072, 262_144, M)


def engine(run: Cli, *words: object) -> dict[str, object]:
    ran = run("state", *words, "--json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, object] = ran.data["engine"]
    return found


METRALE_GIB = ("0.2020", "0.6534", "2.2013", "4.2652", "16.6482")
TRANSFORMERS_GIB = ("0.2036", "0.6553", "2.2042", "4.2694", "16.6605")


@pytest.mark.parametrize(("length", "gib"), list(zip(LENGTHS, METRALE_GIB, strict=True)))
def test_metrale_takes_147_619_840_bytes_and_16_907_a_token(length: int, gib: str, run: Cli) -> None:
    """34 KDA slots of 4,194,304 + 147,456 bytes; 11 layers of 1,024 + 513 bytes a token."""
    found = engine(run, "glm-5.3-flash", "--engine", "metrale", "--context", length)
    assert found["bytes_per_sequence"] == 147_619_840 + 16_907 * length
    assert f"{(147_619_840 + 16_907 * length) / 2**30:.4f}" == gib
    assert found["slot_bytes"] == 34 * (4_194_304 + 24_576 * 3 * 2)
    assert found["reserve_bytes"] == 11 * 513 * length
    assert found["page_bytes"] == 11 * 1024 * length


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize(("length", "gib"), list(zip(LENGTHS, TRANSFORMERS_GIB, strict=True)))
def test_transformers_takes_149_291_008_bytes_and_16_918_a_token(kind: str, length: int, gib: str, run: Cli) -> None:
    """A conv window is 4 rows wide, and the flag beside 256 index elements takes an element: 514 bytes."""
    found = engine(run, "glm-5.3-flash", "--engine", f"transformers@{kind}", "--context", length)
    assert found == {
        "engine": "transformers",
        "version": kind,
        "bytes_per_sequence": 149_291_008 + 16_918 * length,
        "cache": kind,
    }
    assert f"{(149_291_008 + 16_918 * length) / 2**30:.4f}" == gib


@pytest.mark.parametrize(
    ("length", "blocks", "gib"),
    list(zip(LENGTHS, (10, 17, 40, 70, 250), ("0.4713", "0.8011", "1.8850", "3.2988", "11.7814"), strict=True)),
)
def test_vllm_takes_whole_blocks_of_4_352_tokens(length: int, blocks: int, gib: str, run: Cli) -> None:
    """11 latents of 1,024 bytes and 11 indexers of 33 a token; 4 groups of 2 blocks, one tail."""
    found = engine(run, "glm-5.3-flash", "--engine", "vllm@0.31", "--context", length)
    assert found["block_tokens"] == 4352
    assert found["bytes_per_block"] == 11 * 4352 * (1024 + 33)
    assert found["blocks_per_request"] == -(-length // 4352) + 4 * 2 + 1 == blocks
    assert found["bytes_per_sequence"] == blocks * 11 * 4352 * 1057
    assert f"{blocks * 11 * 4352 * 1057 / 2**30:.4f}" == gib
    assert not {"num_blocks", "logged_tokens", "logged_concurrency", "too_small"} & found.keys()


def test_tokens_in_flight_widen_vllms_conv_windows_whoever_drafts_them(run: Cli) -> None:
    """It once refused: "num_spec: found 3 with method none". 4 groups hold 2 + 3 blocks, not 2."""
    plain = engine(run, "glm-5.3-flash", "--engine", "vllm@0.31", "--context", 4096)
    drafted = engine(run, "glm-5.3-flash", "--engine", "vllm@0.31", "--context", 4096, "--num-spec", 3)
    assert (plain["block_tokens"], drafted["block_tokens"]) == (4352, 4480)
    assert (plain["fixed_blocks_per_request"], drafted["fixed_blocks_per_request"]) == (9, 21)


def test_the_mtp_layer_has_its_part(run: Cli) -> None:
    found = engine(run, "glm-5.3-flash", "--engine", "vllm@0.31", "--context", 4096, "--spec", "mtp:3")
    assert found["bytes_per_block"] == 12 * 4480 * 1057
    found = engine(run, "glm-5.3-flash", "--engine", "metrale", "--context", 4096, "--spec", "mtp:3")
    assert found["page_bytes"] == 12 * 1024 * 4096


@pytest.mark.parametrize("name", ["metrale", "transformers", "transformers@static"])
def test_a_sequence_of_no_tokens_has_a_size(name: str, run: Cli) -> None:
    """The static cache once refused it for want of rows."""
    found = engine(run, "glm-5.3-flash", "--engine", name, "--context", 0)
    assert found["bytes_per_sequence"] == (147_619_840 if name == "metrale" else 0)


def test_it_is_said_in_words_too(run: Cli) -> None:
    shown = run("state", "glm-5.3-flash", "--engine", "metrale", "--context", 4096).out
    assert "The same sequence in metrale's own layout, one rank" in shown
    assert "206.82 MiB (216,870,912 bytes)" in shown


def test_without_an_engine_nothing_is_said_of_one(run: Cli) -> None:
    assert "engine" not in run("state", "glm-5.3-flash", "--json").data


VLLM_KNOWS = "0.19.1, 0.22, 0.25, 0.27, 0.28.0, 0.30.0, 0.31.0, 0.32.0, 0.33.0, 0.1.dev20051"
REFUSED = [
    ("sglang", (), 'state: argument --engine: found "sglang"; expected one of vllm, metrale, transformers'),
    ("transformers@5", (), "expected transformers@dynamic or transformers@static"),
    ("metrale@1", (), "expected metrale, which has no versions"),
    (
        "vllm@9.9",
        (),
        f'vllm: version: found "9.9"; expected one of {VLLM_KNOWS}; '
        "name one of them to assume its rules, and the answer says so",
    ),
    (
        "transformers",
        ("--spec", "mtp:1"),
        "transformers: found --tp or --spec; expected neither: its caches are not shared out and nothing drafts; "
        "leave them out",
    ),
    ("vllm@0.28", (), "vllm: model: found glm5_next in 0.28.0; expected 0.30 or later; name a version that knows"),
]


@pytest.mark.parametrize(("name", "flags", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_refused(name: str, flags: tuple[str, ...], words: str, run: Cli) -> None:
    ran = run("state", "glm-5.3-flash", "--engine", name, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
