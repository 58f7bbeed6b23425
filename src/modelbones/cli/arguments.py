"""Flags several verbs share: one word for one thing."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from modelbones.errors import UsageError
from modelbones.units import parse_count


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a directory, a config.json, a preset (see `modelbones families`), or owner/name[@rev] on the Hub",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """`--json` and `--format`."""
    styles = parser.add_mutually_exclusive_group()
    styles.add_argument("--json", dest="style", action="store_const", const="json", help="JSON with a stable schema")
    styles.add_argument(
        "--format",
        dest="style",
        choices=("text", "md", "github"),
        help="text (default), Markdown, or GitHub annotations",
    )
    parser.set_defaults(style="text")


def count(name: str, *, minimum: int = 0) -> Callable[[str], int]:
    """An argparse type: a count such as 131072 or 128k, at least `minimum`."""

    def parse(text: str) -> int:
        try:
            value = parse_count(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if value < minimum:
            raise argparse.ArgumentTypeError(f'found "{text}"; expected {minimum} or more')
        return value

    parse.__name__ = name
    return parse


def spec(text: str) -> int:
    """An argparse type: "mtp:K", as K."""
    method, _, drafted = text.partition(":")
    if method != "mtp" or not drafted.isascii() or not drafted.isdigit() or int(drafted) < 1:
        raise argparse.ArgumentTypeError(f'found "{text}"; expected mtp:K with K tokens drafted a step, 1 or more')
    return int(drafted)


ENGINES = ("vllm", "metrale", "transformers")
NEWEST_VLLM = "0.33.0"


def engine(text: str) -> tuple[str, str | None]:
    """An argparse type: ENGINE[@VERSION], as both; vllm without a version is the newest whose rules are known."""
    name, _, version = text.partition("@")
    if name not in ENGINES:
        raise argparse.ArgumentTypeError(f'found "{text}"; expected one of {", ".join(ENGINES)}')
    if name == "transformers" and version not in ("", "dynamic", "static"):
        raise argparse.ArgumentTypeError(f'found "{text}"; expected transformers@dynamic or transformers@static')
    if name == "metrale" and version:
        raise argparse.ArgumentTypeError(f'found "{text}"; expected metrale, which has no versions')
    return name, version or (NEWEST_VLLM if name == "vllm" else None)
