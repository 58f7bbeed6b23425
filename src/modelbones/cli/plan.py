"""`modelbones plan MODEL`."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from modelbones.cli.arguments import NEWEST_VLLM, add_model, add_output, count, engine
from modelbones.cli.model import CONFIG, Model, open_model
from modelbones.dtypes import BY_CONFIG_NAME, DType
from modelbones.errors import SourceError, UsageError
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import build, preset_names, read_config
from modelbones.findings import Severity
from modelbones.plan import Memory, PlanRequest, plan
from modelbones.plan.gpus import Gpu, parse_gpus
from modelbones.plan.request import MAX_BATCHED_TOKENS
from modelbones.quant.registry import RECIPES
from modelbones.report.plan import plan_blocks, plan_json
from modelbones.report.write import write
from modelbones.skeleton import Skeleton
from modelbones.units import parse_bytes

if TYPE_CHECKING:
    from modelbones.checkpoint.census import Census

DOES_NOT_FIT = 1
_AXES = ("tp", "ep", "pp", "dp", "dcp")
_COUNT = re.compile(r"0*[1-9][0-9]{0,8}", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's flags."""
    add_model(parser)
    parser.add_argument(
        "--engine",
        type=engine,
        default=("vllm", NEWEST_VLLM),
        metavar="ENGINE[@VERSION]",
        help=f"vllm@VERSION, metrale, or transformers@dynamic|static (default: vllm@{NEWEST_VLLM})",
    )
    parser.add_argument("--assume", metavar="VERSION", help="known vllm version whose rules stand in for another")
    parser.add_argument("--gpu", metavar="GPU", help="H200, 8xH100, or a size such as 96GiB")
    for axis in _AXES:
        parser.add_argument(f"--{axis}", type=count("N", minimum=1), metavar="N", help=_AXIS_HELP[axis])
    parser.add_argument("--context", type=count("TOKENS", minimum=1), metavar="TOKENS", help="longest sequence")
    parser.add_argument("--concurrency", type=count("N", minimum=1), default=1, metavar="N", help="sequences at once")
    parser.add_argument("--kv-dtype", default="auto", metavar="DTYPE", help="the engine's word: auto, bf16, fp8, ...")
    parser.add_argument("--state-dtype", choices=sorted(BY_CONFIG_NAME), help="recurrent state (vllm)")
    parser.add_argument(
        "--spec", metavar="mtp:K|draft:MODEL", help="the MTP layer drafts K tokens a step, or a model does"
    )
    parser.add_argument(
        "--num-spec", type=count("K", minimum=1), metavar="K", help="tokens a draft model drafts a step"
    )
    parser.add_argument(
        "--max-batched-tokens", type=count("TOKENS", minimum=1), default=MAX_BATCHED_TOKENS, metavar="TOKENS"
    )
    parser.add_argument("--block-size", type=count("TOKENS", minimum=1), metavar="TOKENS", help="tokens of a block")
    parser.add_argument("--prefix-caching", choices=("on", "off"), default="on")
    parser.add_argument("--memory-fraction", default="0.9", metavar="F", help="share of a card to use (default: 0.9)")
    schemes = ["none", *RECIPES]
    parser.add_argument(
        "--scheme",
        choices=schemes,
        metavar="SCHEME",
        help=f"how weights are quantised: {', '.join(schemes)} (default: none)",
    )
    sources = parser.add_mutually_exclusive_group()
    sources.add_argument(
        "--overhead", metavar="BYTES", help="activations, graphs, libraries a rank, beside the weights"
    )
    sources.add_argument("--kv-memory", metavar="BYTES", help="bytes for state a rank, such as 45.07GiB")
    sources.add_argument("--num-blocks", type=count("N"), metavar="N", help="blocks of the pool, as a log prints them")
    add_output(parser)


_AXIS_HELP = {
    "tp": "tensor-parallel ranks (default: the number of cards)",
    "ep": "ranks that share out the routed experts (default: 1)",
    "pp": "pipeline stages (default: 1)",
    "dp": "data-parallel replicas (default: 1)",
    "dcp": "decode-context-parallel ranks (default: 1)",
}


def run(args: argparse.Namespace) -> int:
    """Print what fits."""
    result = plan(request_of(args))
    write(args.style, data=lambda: plan_json(args.model, result), blocks=lambda: plan_blocks(args.model, result))
    return 0 if result.fits else DOES_NOT_FIT


def request_of(args: argparse.Namespace) -> PlanRequest:
    """The question the flags ask."""
    with open_model(args.model) as model:
        config, census = _read(args, model)
    if census is None and args.gpu is not None:
        _ensure_scheme(args, config)
    skeleton = build(config)
    name, version = args.engine
    gpu_count, gpu = (1, None) if args.gpu is None else parse_gpus(args.gpu)
    num_spec, spec_on, draft = _speculation(args, skeleton)
    longest = config.max_position_embeddings
    context = args.context or longest
    if context is None:
        raise UsageError(f"--context: {args.model} declares no longest context; expected a length; name one")
    return PlanRequest(
        skeleton=skeleton,
        engine=name,
        version=version,
        assume=args.assume,
        gpu=gpu,
        gpu_count=gpu_count,
        memory=_memory(args),
        memory_fraction=_fraction(args.memory_fraction),
        **_axes(args, gpu, gpu_count),
        context=context,
        most_context=max(context, longest or context),
        concurrency=args.concurrency,
        kv_dtype=args.kv_dtype,
        state_dtype=None if args.state_dtype is None else _state_dtype(args.state_dtype),
        num_spec=num_spec,
        spec_on=spec_on,
        draft=draft,
        max_batched_tokens=args.max_batched_tokens,
        block_size=args.block_size,
        prefix_caching=args.prefix_caching == "on",
        recipe=RECIPES.get(args.scheme or "none"),
        census=census,
    )


def _ensure_scheme(args: argparse.Namespace, config: ModelConfig) -> None:
    """Refuse to fill a card with plain weights where the config says they are quantised."""
    spoken = config.declared.quantization
    if spoken and args.scheme is None:
        raise UsageError(
            f"--scheme: found {spoken[0][0]} in {args.model} and no weights; expected to be told how they are stored; "
            "name it, or plan from the checkpoint"
        )


def _axes(args: argparse.Namespace, gpu: Gpu | None, gpu_count: int) -> dict[str, int]:
    given = {axis: getattr(args, axis) for axis in _AXES}
    if gpu is not None and given["tp"] is None and given["pp"] is None and given["dp"] is None:
        given["tp"] = gpu_count
    return {axis: value or 1 for axis, value in given.items()}


def _memory(args: argparse.Namespace) -> Memory:
    return Memory(
        overhead=None if args.overhead is None else parse_bytes(args.overhead),
        kv_memory=None if args.kv_memory is None else parse_bytes(args.kv_memory),
        num_blocks=args.num_blocks,
    )


def _fraction(text: str) -> Decimal:
    try:
        fraction = Decimal(text)
    except InvalidOperation:
        fraction = Decimal("nan")
    if not fraction.is_finite():
        raise UsageError(f'--memory-fraction: found "{text}"; expected a number such as 0.9; write it so')
    return fraction


def _state_dtype(name: str) -> DType:
    return BY_CONFIG_NAME[name]


def _speculation(args: argparse.Namespace, skeleton: Skeleton) -> tuple[int, bool, Skeleton | None]:
    """(tokens drafted, whether the MTP layer drafts, the draft model)."""
    method, _, rest = (args.spec or "").partition(":")
    if not method:
        if args.num_spec is not None:
            raise UsageError("--num-spec: found it without --spec draft:MODEL; expected both; name who drafts")
        return 0, False, None
    if method == "mtp" and _COUNT.fullmatch(rest) and args.num_spec is None:
        if skeleton.mtp is None:
            raise UsageError(f"--spec: {args.model} declares no MTP layer; expected one to draft with; leave it out")
        return int(rest), True, None
    if method == "draft" and rest and args.num_spec is not None:
        return args.num_spec, False, build(read_config(rest))
    raise UsageError(
        f'--spec: found "{args.spec}"; expected mtp:K, or draft:MODEL with --num-spec K; write one of the two'
    )


def _read(args: argparse.Namespace, model: Model) -> tuple[ModelConfig, Census | None]:
    """The config, and the checkpoint beside it where MODEL is one; a config alone has the contract's sizes."""
    path = Path(args.model)
    if args.model in preset_names() or (path.is_file() and path.name == CONFIG):
        return model.config(), None
    config = model.config_of_checkpoint()
    if path.is_dir() and not any(path.glob("*.safetensors*")):
        # A directory with a config and no weights yet is planned from its config.
        return config, None
    census = model.census()
    if args.scheme is not None:
        raise UsageError(f"--scheme: {args.model} is a checkpoint, whose headers say how it is stored; leave it out")
    errors = [finding for finding in census.findings if finding.severity is Severity.ERROR]
    if errors:
        raise SourceError(
            place=census.place,
            found=f"{len(errors)} errors in its files, the first: {errors[0].message}",
            fix="its weights cannot be counted; see `modelbones check`, or plan from its config.json",
        )
    return config, census
