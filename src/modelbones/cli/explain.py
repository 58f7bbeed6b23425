"""`modelbones explain LOG [MODEL]`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from modelbones.cli.arguments import add_output, count
from modelbones.cli.model import open_model
from modelbones.engines.vllm import KvDtype, LayerState, SpecMethod, drafter_states, rules_of
from modelbones.engines.vllm.settings import CAPABILITIES
from modelbones.errors import SourceError, UsageError
from modelbones.explain import EngineLog, Given, explain, read_log
from modelbones.explain.names import preset_of
from modelbones.explain.reading import text_lines
from modelbones.families.registry import build, preset_names
from modelbones.report.explain import ExplainReport, explain_blocks, explain_json
from modelbones.report.write import write
from modelbones.skeleton import Skeleton

DIFFERS = 1
STDIN = "-"
ENGINE = "vllm"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    parser.add_argument("log", metavar="LOG", help="a log with vLLM's start-up lines, or - for standard input")
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="a directory, a config.json, a preset or a Hub name (default: the log's)",
    )
    parser.add_argument("--engine", type=engine, metavar="vllm@VERSION", help="the version, where the log names none")
    parser.add_argument("--assume", metavar="VERSION", help="the known version whose rules an unknown one has")
    parser.add_argument("--context", type=count("TOKENS", minimum=1), metavar="TOKENS", help="the longest context")
    parser.add_argument("--tp", type=count("N", minimum=1), metavar="N", help="tensor-parallel ranks")
    parser.add_argument("--dcp", type=count("N", minimum=1), metavar="N", help="decode-context-parallel ranks")
    parser.add_argument("--kv-dtype", choices=[dtype.value for dtype in KvDtype], help="what --kv-cache-dtype was")
    parser.add_argument("--spec", type=drafting, metavar="mtp:K|draft:CONFIG", help="who drafts")
    parser.add_argument("--prefix-caching", choices=("on", "off"), help="whether it was on")
    parser.add_argument("--block-size", type=count("TOKENS", minimum=1), metavar="TOKENS", help="what --block-size was")
    parser.add_argument(
        "--max-batched-tokens", type=count("TOKENS", minimum=1), metavar="TOKENS", help="tokens of one batch"
    )
    parser.add_argument(
        "--capability",
        type=int,
        choices=sorted(CAPABILITIES),
        help="the GPU's major compute capability (default: 9, H100 and H200)",
    )
    add_output(parser)


def engine(text: str) -> str | None:
    """An argparse type: "vllm@VERSION", as the version; None for "vllm" alone."""
    name, _, version = text.partition("@")
    if name != ENGINE:
        raise argparse.ArgumentTypeError(f'found "{text}"; expected vllm or vllm@VERSION: no other log is read')
    return version or None


def drafting(text: str) -> tuple[SpecMethod, str]:
    """An argparse type: "mtp:K" or "draft:CONFIG", as the method and its value."""
    method, _, value = text.partition(":")
    is_count = value.isascii() and value.isdigit() and 0 < len(value) < 7 and int(value) > 0
    if (method == "mtp" and is_count) or (method == "draft" and value):
        return SpecMethod(method), value
    raise argparse.ArgumentTypeError(f'found "{text}"; expected mtp:K with K tokens drafted a step, or draft:CONFIG')


def run(args: argparse.Namespace) -> int:
    """Print what the log says."""
    log = _read(args.log)
    name = args.model if args.model is not None else _named(log)
    skeleton = None if name is None else _skeleton(name)
    report = ExplainReport(source=args.log, model=name, explanation=explain(log, skeleton, _given(args)))
    write(args.style, data=lambda: explain_json(report), blocks=lambda: explain_blocks(report))
    return 0 if report.explanation.agrees else DIFFERS


def _read(name: str) -> EngineLog:
    place = "standard input" if name == STDIN else name
    try:
        if name == STDIN:
            log = read_log(text_lines(sys.stdin.buffer))
        else:
            with Path(name).open("rb") as stream:
                log = read_log(text_lines(stream))
    except (OSError, ValueError) as error:
        from modelbones.checkpoint.safetensors import unreadable

        raise unreadable(Path(name), error, place=place) from None
    if log is None:
        raise SourceError(
            place=place,
            found="no start-up line of vLLM in it",
            fix="name a log of a vLLM start, with its lines of the KV cache; other engines' lines are not read",
        )
    return log


def _named(log: EngineLog) -> str | None:
    """The model the log names, where it is here: a path, a preset, or a preset's repository."""
    name = log.model
    if name is None or (os.path.lexists(name) and _is_model(name)) or name in preset_names():
        return name
    return preset_of(name)


def _is_model(name: str) -> bool:
    path = Path(name)
    return (path / "config.json").is_file() or path.is_file()


def _skeleton(name: str) -> Skeleton:
    with open_model(name) as model:
        return build(model.config())


def _given(args: argparse.Namespace) -> Given:
    method, num_spec, drafter = _drafted(args.spec)
    if args.assume is not None:
        rules_of(args.assume)
    return Given(
        version=args.engine,
        assume=args.assume,
        max_model_len=args.context,
        tp=args.tp,
        dcp=args.dcp,
        kv_dtype=None if args.kv_dtype is None else KvDtype(args.kv_dtype),
        spec_method=method,
        num_spec=num_spec,
        drafter=drafter,
        prefix_caching=None if args.prefix_caching is None else args.prefix_caching == "on",
        block_size=args.block_size,
        max_batched_tokens=args.max_batched_tokens,
        capability=args.capability,
    )


def _drafted(spec: tuple[SpecMethod, str] | None) -> tuple[SpecMethod | None, int | None, tuple[LayerState, ...]]:
    if spec is None:
        return None, None, ()
    method, value = spec
    if method is SpecMethod.MTP:
        return method, int(value), ()
    states = drafter_states(_skeleton(value))
    if not states:
        raise UsageError(f"--spec: {value} keeps no state; expected a drafter that does; leave --spec out")
    return method, None, states
