"""The `synth` report: what was written."""

from __future__ import annotations

import argparse
from typing import Any

from modelbones.report.blocks import Block, Facts
from modelbones.synth.layout import Tensor
from modelbones.units import format_exact


def synth_json(args: argparse.Namespace, model_type: str, listed: list[Tensor], files: int) -> dict[str, Any]:
    """What was written, as JSON."""
    return {
        "schema": "modelbones/synth/1",
        "model": args.model,
        "model_type": model_type,
        "out": str(args.out),
        "fill": args.fill,
        "seed": args.seed,
        "scheme": args.scheme,
        "dialect": args.dialect,
        "shrunk": args.shrink,
        "tensors": len(listed),
        "bytes": sum(tensor.nbytes for tensor in listed),
        "files": files,
    }


def synth_blocks(args: argparse.Namespace, model_type: str, listed: list[Tensor], files: int) -> tuple[Block, ...]:
    """What was written, for people."""
    rows = (
        ("written", str(args.out)),
        ("model", f"{args.model} ({model_type}){', shrunk' if args.shrink else ''}"),
        ("scheme", args.scheme),
        ("names", args.dialect),
        ("fill", f"{args.fill}, seed {args.seed}" if args.fill == "random" else args.fill),
        ("tensors", f"{len(listed):,} in {files:,} {'file' if files == 1 else 'files'}"),
        ("payload", format_exact(sum(tensor.nbytes for tensor in listed))),
    )
    return (Facts(rows=rows),)
