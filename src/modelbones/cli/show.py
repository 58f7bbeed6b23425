"""`modelbones show MODEL`."""

from __future__ import annotations

import argparse

from modelbones.cli.arguments import add_model, add_output, count
from modelbones.cli.model import open_model
from modelbones.errors import UsageError
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import build
from modelbones.report.blocks import Block
from modelbones.report.show import (
    assumed_blocks,
    layer_blocks,
    show_json,
    summary_blocks,
    tensor_blocks,
    unread_blocks,
)
from modelbones.report.write import write
from modelbones.skeleton import Layer, Skeleton


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_model(parser)
    views = parser.add_mutually_exclusive_group()
    views.add_argument("--layer", type=count("N"), metavar="N", help="one layer: residual path, tensors, state")
    views.add_argument("--tensors", action="store_true", help="every tensor pattern: name, shape, dtype, count")
    views.add_argument("--unread", action="store_true", help="config keys that nothing here needs")
    views.add_argument("--assumed", action="store_true", help="absent config keys and what their absence means")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print the skeleton of MODEL."""
    with open_model(args.model) as model:
        config, revision = model.config(), model.revision
    skeleton = build(config)
    layer = None if args.layer is None else _layer(skeleton, args.layer)
    write(
        args.style,
        data=lambda: show_json(args.model, config, skeleton, layer, revision=revision),
        blocks=lambda: _blocks(args, config, skeleton, layer, revision),
    )
    return 0


def _layer(skeleton: Skeleton, index: int) -> Layer:
    found = next((layer for layer in skeleton.all_layers() if layer.index == index), None)
    if found is None:
        last = skeleton.all_layers()[-1].index
        raise UsageError(f"--layer: found {index}; expected 0 to {last}; name a layer this model has")
    return found


def _blocks(
    args: argparse.Namespace, config: ModelConfig, skeleton: Skeleton, layer: Layer | None, revision: str | None
) -> tuple[Block, ...]:
    if layer is not None:
        return layer_blocks(skeleton, layer)
    if args.tensors:
        return tensor_blocks(skeleton)
    if args.unread:
        return unread_blocks(config)
    if args.assumed:
        return assumed_blocks(config)
    return summary_blocks(args.model, config, skeleton, revision=revision)
