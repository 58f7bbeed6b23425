"""`modelbones state MODEL`."""

from __future__ import annotations

import argparse

from modelbones.cli.arguments import add_model, add_output, count, engine, spec
from modelbones.cli.model import open_model
from modelbones.errors import UsageError
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import build
from modelbones.report.state import EngineState, StateReport, state_blocks, state_json
from modelbones.report.write import write
from modelbones.skeleton import Skeleton


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_model(parser)
    parser.add_argument(
        "--context",
        type=count("TOKENS"),
        metavar="TOKENS",
        help="length of the sequence, such as 131072 or 128k (default: the config's max_position_embeddings)",
    )
    drafting = parser.add_mutually_exclusive_group()
    drafting.add_argument("--spec", type=spec, metavar="mtp:K", help="the MTP layer drafts K tokens a step")
    drafting.add_argument(
        "--num-spec",
        type=count("N"),
        default=0,
        metavar="N",
        help="N speculative tokens in flight, whoever drafts them (widens conv windows only)",
    )
    parser.add_argument(
        "--ranks", type=count("N", minimum=1), metavar="N", help="the widest of N ranks' share, by the metrale rule"
    )
    parser.add_argument(
        "--concurrency", type=count("N", minimum=1), default=1, metavar="N", help="sequences at once (default: 1)"
    )
    parser.add_argument(
        "--engine",
        type=engine,
        metavar="ENGINE[@VERSION]",
        help="also what it takes in an engine's own layout: vllm@0.33.0, transformers@static, metrale",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print what one sequence of MODEL costs."""
    with open_model(args.model) as model:
        config, revision = model.config(), model.revision
    skeleton = build(config)
    if args.spec is not None and skeleton.mtp is None:
        raise UsageError(f"--spec: {args.model} declares no MTP layer; expected one to draft with; leave --spec out")
    report = StateReport(
        model=args.model,
        revision=revision,
        skeleton=skeleton,
        context=_context(args, config),
        num_spec=args.num_spec if args.spec is None else args.spec,
        spec_on=args.spec is not None,
        concurrency=args.concurrency,
        ranks=args.ranks,
        engine=_engine(args, skeleton, config),
    )
    write(args.style, data=lambda: state_json(report), blocks=lambda: state_blocks(report))
    return 0


def _engine(args: argparse.Namespace, skeleton: Skeleton, config: ModelConfig) -> EngineState | None:
    """What the sequence costs in the engine's own layout, when one is asked for."""
    if args.engine is None:
        return None
    from modelbones.plan.sequence import sequence_words

    name, version = args.engine
    words = sequence_words(
        skeleton,
        name,
        version,
        context=_context(args, config),
        num_spec=args.num_spec if args.spec is None else args.spec,
        spec_on=args.spec is not None,
    )
    return EngineState(engine=name, version=version, words=words)


def _context(args: argparse.Namespace, config: ModelConfig) -> int:
    if args.context is not None:
        context: int = args.context
        return context
    if config.max_position_embeddings is None:
        raise UsageError(
            f"--context: {args.model} has no max_position_embeddings; expected a length; name one with --context"
        )
    return config.max_position_embeddings
