"""`modelbones check MODEL`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from modelbones.audit import Audit, Options, audit
from modelbones.audit.strays import stray_files, with_strays
from modelbones.audit.undeclared import judged_as_declared, stores_mtp
from modelbones.checkpoint.census import Census
from modelbones.cli.arguments import add_model, add_output
from modelbones.cli.model import Model, open_model
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import build, declaring_mtp, read_config
from modelbones.findings import Severity
from modelbones.quant.claim import Claim
from modelbones.quant.registry import read_claims
from modelbones.report.check import check_blocks, check_json, github_annotations
from modelbones.report.write import write
from modelbones.tensors import Group

FOUND_WANTING = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_model(parser)
    parser.add_argument(
        "--config", metavar="CONFIG", help="a config.json or a preset to hold it against (default: the one beside it)"
    )
    parser.add_argument(
        "--only", type=groups, default=frozenset(), metavar="GROUP[,GROUP]", help="judge only trunk, mtp or vision"
    )
    parser.add_argument(
        "--allow-absent",
        type=groups,
        default=frozenset(),
        metavar="GROUP[,GROUP]",
        help="groups that may be absent as a whole: mtp, vision",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 on warnings too")
    add_output(parser)


def groups(text: str) -> frozenset[Group]:
    """An argparse type: group names with commas between."""
    known = {group.value: group for group in Group}
    unknown = [word for word in text.split(",") if word not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f'found "{unknown[0]}"; expected some of {", ".join(known)}')
    return frozenset(known[word] for word in text.split(","))


def run(args: argparse.Namespace) -> int:
    """Hold the checkpoint at MODEL against its config."""
    with open_model(args.model) as model:
        config = read_config(args.config) if args.config is not None else model.config_of_checkpoint()
        census = model.census()
        claims = read_claims(_claimed(config, model), place=config.declared.place)
        options = Options(only=args.only, allow_absent=args.allow_absent)
        result = _judged(config, census, claims, options)
        strays = {file: model.names_in(file) for file in stray_files(result)}
        revision = model.revision
    if strays:
        result = with_strays(result, build(config), strays)
    write(
        args.style,
        data=lambda: check_json(args.model, config.model_type, result, revision=revision),
        blocks=lambda: check_blocks(args.model, config.model_type, result, revision=revision),
        annotations=lambda: github_annotations(result),
    )
    return _exit_code(result, is_strict=args.strict)


def _judged(config: ModelConfig, census: Census, claims: tuple[Claim, ...], options: Options) -> Audit:
    """The audit; where the config does not say whether there is an MTP layer, what is stored does."""
    skeleton = build(config)
    declared = declaring_mtp(config) if skeleton.mtp is None else None
    if declared is None or not stores_mtp(skeleton, census):
        return audit(skeleton, census, claims, options)
    result = audit(build(declared), census, claims, options)
    notes = (judged_as_declared(config.declared.place),) if options.judges(Group.MTP) else ()
    return replace(result, findings=(*result.findings, *notes))


def _claimed(config: ModelConfig, model: Model) -> list[tuple[str, Mapping[str, Any] | None]]:
    """Everything that speaks of quantisation: the config, and modelopt's file beside it."""
    place, beside = config.declared.place, model.quantization()
    spoken: list[tuple[str, Mapping[str, Any] | None]] = [
        (f"{place} {key}", words) for key, words in config.declared.quantization
    ]
    return spoken if beside is None else [*spoken, beside]


def _exit_code(result: Audit, *, is_strict: bool) -> int:
    worst: Callable[[Severity], int] = result.count
    failing = worst(Severity.ERROR) + (worst(Severity.WARNING) if is_strict else 0)
    return FOUND_WANTING if failing else 0
