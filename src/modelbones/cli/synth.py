"""`modelbones synth MODEL OUT`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from modelbones.cli.arguments import add_model, add_output, count
from modelbones.cli.model import open_model
from modelbones.dialects.known import DIALECTS, PUBLISHED
from modelbones.dialects.respell import respelled
from modelbones.errors import UsageError
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import build, family_of, read_mapping
from modelbones.families.shrinking import shortest_stack
from modelbones.quant.recipe import Recipe
from modelbones.quant.registry import RECIPES
from modelbones.report.synth import synth_blocks, synth_json
from modelbones.report.write import write
from modelbones.skeleton import Skeleton
from modelbones.synth.fill import Fill
from modelbones.synth.layout import tensors, unpacked_modules
from modelbones.synth.write import write_checkpoint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_model(parser)
    parser.add_argument("out", type=Path, metavar="OUT", help="the directory to make")
    parser.add_argument(
        "--fill",
        choices=[fill.value for fill in Fill],
        default=Fill.SPARSE.value,
        help="sparse: full size in holes, almost no disk (default); zeros; random: finite, reproducible",
    )
    parser.add_argument("--seed", type=count("N"), default=0, metavar="N", help="for --fill random (default: 0)")
    schemes = ["none", *RECIPES]
    parser.add_argument(
        "--scheme", choices=schemes, default="none", metavar="SCHEME", help=f"{', '.join(schemes)} (default: none)"
    )
    parser.add_argument(
        "--dialect",
        choices=[PUBLISHED, *DIALECTS],
        default=PUBLISHED,
        metavar="DIALECT",
        help=f"whose names to write: published (default), {', '.join(DIALECTS)}",
    )
    parser.add_argument(
        "--shards", type=count("N", minimum=1), metavar="N", help="files to write (default: 5 GiB each)"
    )
    parser.add_argument("--shrink", action="store_true", help="a tiny model of the same shape: every kind of layer")
    parser.add_argument("--force", action="store_true", help="replace what stands at OUT")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Write a checkpoint that satisfies MODEL's contract."""
    with open_model(args.model) as model:
        config = model.config()
    raw = dict(config.declared.raw)
    if args.shrink:
        raw = _shrunk(config)
        config = read_mapping(raw, place=f"{args.model} shrunk")
    skeleton = build(config)
    recipe = RECIPES.get(args.scheme)
    raw = _declared(raw, skeleton, recipe)
    patterns = respelled(skeleton, DIALECTS.get(args.dialect))
    if recipe is not None and not any(recipe.packs(pattern) for pattern in patterns):
        raise UsageError(
            f"--scheme {args.scheme}: nothing to pack among the names of --dialect {args.dialect}; "
            "expected linear weights it packs; choose another of the two"
        )
    listed = list(tensors(patterns, skeleton.dtype, recipe))
    files = write_checkpoint(
        args.out,
        listed,
        raw,
        fill=Fill(args.fill),
        seed=args.seed,
        num_shards=args.shards,
        is_forced=args.force,
    )
    write(
        args.style,
        data=lambda: synth_json(args, config.model_type, listed, files),
        blocks=lambda: synth_blocks(args, config.model_type, listed, files),
    )
    return 0


def _shrunk(config: ModelConfig) -> dict[str, Any]:
    family = family_of(config.model_type)
    if family is None or family.tiny is None:
        raise UsageError(f"--shrink: no tiny form of {config.model_type} is declared; leave --shrink out")
    return family.tiny(config.declared.raw, shortest_stack(build(config).layers))


def _declared(raw: dict[str, Any], skeleton: Skeleton, recipe: Recipe | None) -> dict[str, Any]:
    """`raw` with the quantisation it will have, in place of what it had."""
    plain = {key: value for key, value in raw.items() if key not in ("quantization_config", "quantization")}
    if recipe is None:
        return plain
    return {**plain, recipe.key: recipe.declare(unpacked_modules(skeleton, recipe))}
