"""Parse the verb, run it, turn every error of ours into one line and an exit code."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

from modelbones import __version__
from modelbones.errors import (
    EngineRefusedError,
    ModelbonesError,
    UnknownArchitectureError,
    UnknownSchemeError,
    UsageError,
)
from modelbones.report.blocks import visible

_HELP = partial(argparse.HelpFormatter, width=78)
VERBS = {
    "show": "what a model is made of: layers, wiring, tensors",
    "state": "what a sequence costs: bytes fixed, per token, reserved, on the device",
    "check": "whether a checkpoint really is the model its config says",
    "synth": "what was written: a checkpoint that satisfies a config's contract",
    "plan": "what fits: sequences, context, bytes on each rank, by an engine's own rules",
    "explain": "what a vLLM log says: each figure recomputed, in plain words, and what is held",
    "engines": "the engines whose rules are known, and what they reproduce",
    "families": "the architectures this reads, and how each was verified",
}
WRONG_USE, REFUSED, UNKNOWN = 2, 3, 4
INTERRUPTED, CLOSED_PIPE = 130, 141


class Parser(argparse.ArgumentParser):
    """argparse in the house's words: wrong use is a `UsageError`, help fits 80 columns.

    A fixed width also spares argparse a look at the terminal, and the imports for it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _HELP, **options})

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting; `main` says it and exits."""
        verb = self.prog.removeprefix("modelbones").strip()
        raise UsageError(f"{verb}: {message}; see {self.prog} --help" if verb else f"{message}; see {self.prog} --help")


def parser() -> Parser:
    """The command line; each verb's flags are made when it is the one asked for."""
    top = Parser(
        prog="modelbones",
        description="Exact answers about a language model from its config and checkpoint headers alone.",
        epilog=(
            "MODEL: a directory, a config.json, a built-in preset such as glm-5.3-flash, or "
            "owner/name[@rev] on the Hub. "
            "Exit codes: 0 good, 1 found wanting, 2 wrong use, 3 unreadable or refused, 4 cannot be judged."
        ),
    )
    top.add_argument("--version", action="version", version=f"modelbones {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for verb, line in VERBS.items():
        verbs.add_parser(verb, help=line, description=f"Print {line}.", add_help=False)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result is its exit code."""
    if argv is None:
        # A command ends long before its garbage would be worth collecting.
        gc.disable()
        _stop_on_signals()
        _ready_output()
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except ModelbonesError as error:
        print("modelbones:", "\n".join(map(visible, str(error).split("\n"))), file=sys.stderr)
        _drop_output()
        return _exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return CLOSED_PIPE


def _ready_output() -> None:
    """Standard output that takes any text, whatever the locale, and that is there even when it was closed."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Throw away what could not be written: it would raise again when the interpreter closes the stream."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop_on_signals() -> None:
    """Let a polite end of the process unwind it, so that `synth` leaves nothing behind."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _run(argv: list[str]) -> int:
    if argv and argv[0] in VERBS:
        verb = import_module(f"modelbones.cli.{argv[0]}")
        own = Parser(prog=f"modelbones {argv[0]}", description=f"Print {VERBS[argv[0]]}.")
        verb.add_arguments(own)
        code: int = verb.run(own.parse_args(argv[1:]))
        return code
    parser().parse_args(argv)
    return 0


def _exit_code(error: ModelbonesError) -> int:
    if isinstance(error, UsageError | EngineRefusedError):
        return WRONG_USE
    return UNKNOWN if isinstance(error, UnknownArchitectureError | UnknownSchemeError) else REFUSED
