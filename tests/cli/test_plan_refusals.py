"""`plan`: everything it refuses, exact text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelbones.families.registry import preset
from tests.cli.running import Cli

SOURCES = (
    " --overhead, --kv-memory and --num-blocks; expected one; activation and graph memory do not follow from a config: "
    "give what the engine measured (--overhead) or what it says is left (--kv-memory)"
)
CARDS = "B200, H200, H100, A100, A100-40GB, L40S, RTX5090, RTX4090, RTX3090, L4, A10, T4"
ONLY_VLLM = "metrale has no such choice; expected it for vllm only; leave it out"
NO_SPEC = "expected mtp:K, or draft:MODEL with --num-spec K; write one of the two"
NEEDS = ("--kv-memory", "1GiB")
METRALE = ("--engine", "metrale", *NEEDS)
VERSIONS = "0.19.1, 0.22, 0.25, 0.27, 0.28.0, 0.30.0, 0.31.0, 0.32.0, 0.33.0, 0.1.dev20051"
REFUSED: list[tuple[tuple[object, ...], str]] = [
    ((), f"plan: found none of{SOURCES}"),
    (
        ("--overhead", 1, "--kv-memory", 1),
        "plan: argument --kv-memory: not allowed with argument --overhead; see modelbones plan --help",
    ),
    (
        ("--num-blocks", 1, "--kv-memory", 1),
        "plan: argument --kv-memory: not allowed with argument --num-blocks; see modelbones plan --help",
    ),
    (("--overhead", "1GiB"), "plan: found --overhead without --gpu; expected a card to take it from; name one"),
    (
        ("--gpu", "2xH100", "--tp", 4, *NEEDS),
        "--gpu: found 2 x H100 for 4 ranks (tp 4 x pp 1 x dp 1); expected as many cards as ranks; change either",
    ),
    (
        ("--gpu", "8xH100", "--pp", 2, *NEEDS),
        "--gpu: found 8 x H100 for 2 ranks (tp 1 x pp 2 x dp 1); expected as many cards as ranks; change either",
    ),
    (
        ("--gpu", "H999", *NEEDS),
        f'--gpu: found "H999"; expected one of {CARDS}, or a size such as 96GiB; write 8xH100 for 8',
    ),
    (
        ("--gpu", "0xH100", *NEEDS),
        f'--gpu: found "0xH100"; expected one of {CARDS}, or a size such as 96GiB; write 8xH100 for 8',
    ),
    (
        ("--memory-fraction", "1.5", *NEEDS),
        "--memory-fraction: found 1.5; expected more than 0, at most 1; write 0.9 for 90 %",
    ),
    (
        ("--memory-fraction", 0, *NEEDS),
        "--memory-fraction: found 0; expected more than 0, at most 1; write 0.9 for 90 %",
    ),
    *(
        (
            ("--memory-fraction", word, *NEEDS),
            f'--memory-fraction: found "{word}"; expected a number such as 0.9; write it so',
        )
        for word in ("most", "nan", "snan", "inf")
    ),
    *(
        (
            ("--engine", engine, "--num-blocks", 3),
            f"--num-blocks: {engine} has no blocks; expected --kv-memory or --overhead",
        )
        for engine in ("metrale", "transformers")
    ),
    ((*METRALE, "--dcp", 2), f"--dcp: {ONLY_VLLM}"),
    ((*METRALE, "--block-size", 64), f"--block-size: {ONLY_VLLM}"),
    ((*METRALE, "--state-dtype", "float16"), f"--state-dtype: {ONLY_VLLM}"),
    ((*METRALE, "--spec", "draft:llama-3.1-8b", "--num-spec", 2), f"--spec draft: {ONLY_VLLM}"),
    ((*METRALE, "--assume", "0.33"), f"--assume: {ONLY_VLLM}"),
    ((*METRALE, "--prefix-caching", "off"), f"--prefix-caching off: {ONLY_VLLM}"),
    ((*METRALE, "--max-batched-tokens", 2048), f"--max-batched-tokens: {ONLY_VLLM}"),
    ((*METRALE, "--kv-dtype", "fp8"), f"--kv-dtype: {ONLY_VLLM}"),
    *(
        (
            ("--engine", "transformers", *NEEDS, *flags),
            "transformers: found --tp or --spec; expected neither: its caches are not shared out and nothing drafts; "
            "leave them out",
        )
        for flags in (("--tp", 2), ("--spec", "mtp:1"))
    ),
    (
        ("--engine", "transformers", *NEEDS, "--kv-dtype", "fp8"),
        "--kv-dtype: found fp8; expected one of auto, bfloat16, float16, float32, bf16 for transformers",
    ),
    (
        ("--kv-dtype", "int4", *NEEDS),
        "--kv-dtype: found int4; expected one of auto, bf16, fp8, fp8_ds_mla, nvfp4_ds_mla; choose one",
    ),
    (
        ("--tp", 3, *NEEDS),
        "vllm: tp: found 3 ranks for 64 heads; expected a count that divides them; name another tp",
    ),
    (
        ("--tp", 4, "--dcp", 8, *NEEDS),
        "vllm: dcp: found 8 over 4 tensor-parallel ranks; expected a divisor of the ranks that hold the same rows: "
        "they share the context; lower dcp or raise tp",
    ),
    (
        ("--state-dtype", "float16", *NEEDS),
        "vllm: state_dtype: found F16 for a recurrent state in 0.33.0; expected F32 or BF16; "
        "name one of them, or none for the default",
    ),
    (
        ("--engine", "vllm@0.31", "--kv-dtype", "fp8_ds_mla", *NEEDS),
        "vllm: kv_dtype: found fp8_ds_mla without rope on SM90 in 0.31.0; expected auto or fp8, or 0.32 and later; "
        "name another dtype, device or version",
    ),
    (
        ("--gpu", "A100", *NEEDS),
        "vllm: kv_dtype: found compute capability 8; expected 9 or more: no sparse latent backend is older; "
        "name another dtype, device or version",
    ),
    (
        ("--engine", "vllm@9.9", *NEEDS),
        f'vllm: version: found "9.9"; expected one of {VERSIONS}; '
        "name one of them to assume its rules, and the answer says so",
    ),
    (
        ("--engine", "vllm@9.9", "--assume", "9.8", *NEEDS),
        f'vllm: version: found "9.8"; expected one of {VERSIONS}; '
        "name one of them to assume its rules, and the answer says so",
    ),
    *(
        (("--spec", word, *NEEDS), f'--spec: found "{word}"; {NO_SPEC}')
        for word in ("mtp:0", "mtp:", "mtp:-1", "mtp:x", "mtp:\u0663", "mtp", "foo", "draft:", "draft:llama-3.1-8b")
    ),
    (("--spec", "mtp:" + "9" * 5000, *NEEDS), f'--spec: found "mtp:{"9" * 5000}"; {NO_SPEC}'),
    (("--spec", "mtp:2", "--num-spec", 2, *NEEDS), f'--spec: found "mtp:2"; {NO_SPEC}'),
    (
        ("--num-spec", 3, *NEEDS),
        "--num-spec: found it without --spec draft:MODEL; expected both; name who drafts",
    ),
    (("--pp", 46, *NEEDS), "--pp: found 46 stages for 45 layers; expected fewer"),
    (
        ("--ep", 4, "--tp", 2, *NEEDS),
        "--ep: found 4 for 2 ranks of a stage (tp 2 x dp 1); expected 1 or 2: every rank of a stage holds its share "
        "of the experts; change either",
    ),
    (
        ("--kv-memory", "12parsec"),
        'bytes: found "12parsec"; expected 96GiB, 80GB or a number of bytes; write it so',
    ),
    (
        ("--context", 0, *NEEDS),
        'plan: argument --context: found "0"; expected 1 or more; see modelbones plan --help',
    ),
]


@pytest.mark.parametrize(("flags", "words"), REFUSED, ids=[" ".join(map(str, row[0]))[:60] for row in REFUSED])
def test_what_is_refused(flags: tuple[object, ...], words: str, run: Cli) -> None:
    ran = run("plan", "glm-5.3-flash", *flags)
    assert (ran.code, ran.out, ran.err) == (2, "", f"modelbones: {words}\n")


def test_a_model_without_an_mtp_layer_cannot_draft_with_it(run: Cli) -> None:
    ran = run("plan", "llama-3.1-8b", "--spec", "mtp:1", *NEEDS)
    assert ran.code == 2
    assert ran.err == (
        "modelbones: --spec: llama-3.1-8b declares no MTP layer; expected one to draft with; leave it out\n"
    )


def test_a_model_that_names_no_longest_context_needs_one(tmp_path: Path, run: Cli) -> None:
    config = {key: value for key, value in preset("llama-3.1-8b").items() if key != "max_position_embeddings"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    ran = run("plan", path, *NEEDS)
    assert ran.code == 2
    assert ran.err == f"modelbones: --context: {path} declares no longest context; expected a length; name one\n"
    assert run("plan", path, *NEEDS, "--context", 4096).code == 0
