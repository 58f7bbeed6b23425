"""The `show` report: what a model is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modelbones.budget import StateBudget
from modelbones.buffers import PERSISTENT, Grows
from modelbones.contract import Size, size_of, sizes_by_role, total_size
from modelbones.families.model_config import ModelConfig
from modelbones.report.blocks import Block, Facts, Lines, Table
from modelbones.report.words import buffer_json, growth_text, ranges, resolved, shape_text
from modelbones.skeleton import Layer, ResidualStep, Skeleton
from modelbones.tensors import LAYER, Group, TensorPattern
from modelbones.units import format_exact


def show_json(
    model: str,
    config: ModelConfig,
    skeleton: Skeleton,
    layer: Layer | None = None,
    *,
    revision: str | None = None,
) -> dict[str, Any]:
    """The skeleton as JSON, or one layer of it with its tensors; sizes are unquantised."""
    layers = skeleton.all_layers() if layer is None else (layer,)
    patterns = skeleton.patterns if layer is None else skeleton.layer_patterns((layer,), _group(layer))
    total = total_size(skeleton.patterns, skeleton.dtype)
    return {
        "schema": "modelbones/show/1",
        "model": model,
        "revision": revision,
        "model_type": skeleton.model_type,
        "architectures": list(config.declared.architectures),
        "hidden_size": skeleton.hidden_size,
        "dtype": skeleton.dtype.value,
        "tensors": total.tensors,
        "parameters": total.parameters,
        "bytes": total.nbytes,
        "structural_tensors": len(skeleton.structural_tensor_set()),
        "roles": [
            {"role": role.value, "group": group.value, **_size_json(size)}
            for (role, group), size in sizes_by_role(skeleton.patterns, skeleton.dtype).items()
        ],
        "layers": [_layer_json(each) for each in layers],
        "final": [{"kind": step.kind.value, "weight": step.weight} for step in skeleton.final_plan()],
        "patterns": [pattern_json(pattern, skeleton) for pattern in patterns],
        "assumed": [
            {"path": item.path, "meaning": item.meaning, "source": item.source} for item in config.declared.assumed
        ],
        "unread": list(config.declared.unread),
    }


def _group(layer: Layer) -> Group:
    return Group.MTP if layer.is_mtp else Group.TRUNK


def _size_json(size: Size) -> dict[str, int]:
    return {"tensors": size.tensors, "parameters": size.parameters, "bytes": size.nbytes}


def _layer_json(layer: Layer) -> dict[str, Any]:
    return {
        "index": layer.index,
        "mixer": layer.mixer.value,
        "mlp": layer.mlp.value,
        "hyper_connection": layer.hyper_connection,
        "is_mtp": layer.is_mtp,
        "state": layer.states[0].value if layer.states else None,
        "states": [state.value for state in layer.states],
        "indexer_from": layer.indexer_from,
        "buffers": [buffer_json(buffer) for buffer in layer.buffers],
        "steps": [_step_json(step) for step in layer.steps],
    }


def _step_json(step: ResidualStep) -> dict[str, Any]:
    return {"kind": step.kind.value, "site": step.site and step.site.value, "weight": step.weight}


def pattern_json(pattern: TensorPattern, skeleton: Skeleton) -> dict[str, Any]:
    """One pattern as JSON; `bytes` is for all its tensors, unquantised."""
    return {
        "name": pattern.name,
        "role": pattern.role.value,
        "group": pattern.group.value,
        "shape": list(pattern.shape),
        "dtypes": [dtype.value for dtype in pattern.permitted.dtypes],
        "risky_dtypes": [dtype.value for dtype in pattern.permitted.risky],
        "layers": list(pattern.layers),
        "experts": pattern.num_experts,
        "required": pattern.required,
        **_size_json(size_of(pattern, skeleton.dtype)),
    }


def summary_blocks(
    model: str, config: ModelConfig, skeleton: Skeleton, *, revision: str | None = None
) -> tuple[Block, ...]:
    """The model in one screen: what it is, where its bytes are, its layers."""
    total = total_size(skeleton.patterns, skeleton.dtype)
    budget = skeleton.budget()
    mtp = "none declared" if skeleton.mtp is None else f"layer {skeleton.mtp.index}: {_kind(skeleton.mtp)}"
    identity = Facts(
        rows=(
            ("model", f"{model} ({skeleton.model_type})"),
            *resolved(revision),
            ("layers", _layer_summary(skeleton.layers)),
            ("MTP", mtp),
            ("parameters", f"{total.parameters:,}"),
            ("tensors", f"{total.tensors:,}, of them {len(skeleton.structural_tensor_set()):,} structural"),
            ("unquantised", format_exact(total.nbytes)),
            ("state", _state(budget)),
        )
    )
    return identity, _roles(skeleton), _layers(skeleton), *_remarks(config)


def _state(budget: StateBudget) -> str:
    """What a sequence keeps, in one line; windows and pools are neither fixed nor per token."""
    line = f"{budget.fixed():,} bytes a sequence and {budget.per_token():,} a token"
    grown = {buffer.per.grows for term in budget.counted for buffer, _ in term.buffers}
    others = sorted(grows.value for grows in grown - {Grows.FIXED, Grows.TOKEN})
    beside = f", beside buffers that grow by {', '.join(others)} (see `state`)" if others else ""
    return f"{line}{beside} (metrale layout)"


def _layer_summary(layers: Iterable[Layer]) -> str:
    kinds: dict[str, int] = {}
    for layer in layers:
        kinds[layer.mixer.value.upper()] = kinds.get(layer.mixer.value.upper(), 0) + 1
    return f"{sum(kinds.values())}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def _kind(layer: Layer) -> str:
    wiring = "hyper-connected" if layer.hyper_connection else "plain residual"
    return f"{layer.mixer.value.upper()}, {layer.mlp.value.replace('_', ' ')}, {wiring}"


def _roles(skeleton: Skeleton) -> Table:
    rows = tuple(
        (
            role.value.replace("_", " ") + (" (MTP)" if group is Group.MTP else ""),
            f"{size.tensors:,}",
            f"{size.parameters:,}",
            f"{size.nbytes:,}",
        )
        for (role, group), size in sizes_by_role(skeleton.patterns, skeleton.dtype).items()
    )
    columns = ("role", ">tensors", ">parameters", f">bytes in {skeleton.dtype.value}")
    return Table(title="Where the weights are", columns=columns, rows=rows)


def _layers(skeleton: Skeleton) -> Table:
    kinds: dict[tuple[str, ...], list[int]] = {}
    for layer in skeleton.all_layers():
        fixed, per_token = _layer_state(layer)
        states = ", ".join(state.value for state in layer.states) or "none"
        row = (_kind(layer), states, f"{fixed:,}", f"{per_token:,}")
        kinds.setdefault(row, []).append(layer.index)
    rows = tuple((ranges(indices), *row) for row, indices in sorted(kinds.items(), key=lambda item: item[1]))
    folded = tuple((part, *(row if not n else ("", "", "", ""))) for spans, *row in rows for n, part in _fold(spans))
    columns = ("layers", "mixer, MLP, residual", "state", ">B/sequence", ">B/token")
    return Table(title="Layers", columns=columns, rows=folded)


def _fold(spans: str, width: int = 16) -> list[tuple[int, str]]:
    """Spans in lines short enough for a column."""
    lines = [""]
    for span in spans.split(", "):
        if lines[-1] and len(lines[-1]) + len(span) + 2 > width:
            lines[-1] += ","
            lines.append(span)
        else:
            lines[-1] += f", {span}" if lines[-1] else span
    return list(enumerate(lines))


def _layer_state(layer: Layer) -> tuple[int, int]:
    kept = [buffer for buffer in layer.buffers if buffer.home in PERSISTENT]
    fixed = sum(buffer.row_bytes() for buffer in kept if buffer.per.grows is Grows.FIXED)
    return fixed, sum(buffer.row_bytes() for buffer in kept if buffer.per.grows is Grows.TOKEN)


def _remarks(config: ModelConfig) -> tuple[Block, ...]:
    assumed, unread = len(config.declared.assumed), len(config.declared.unread)
    lines = [f"{unread} keys of the config were not needed (--unread lists them)."] if unread else []
    if assumed:
        lines.append(f"{assumed} absent keys were given their declared meaning (--assumed lists them).")
    return (Lines(lines=tuple(lines)),) if lines else ()


def layer_blocks(skeleton: Skeleton, layer: Layer) -> tuple[Block, ...]:
    """One layer: its wiring step by step, its tensors, its state."""
    selection = "its own" if layer.indexer_from == layer.index else f"layer {layer.indexer_from}'s"
    facts = [("layer", str(layer.index)), ("kind", _kind(layer))]
    if layer.indexer_from is not None:
        facts.append(("indexer", f"{selection} selection"))
    steps = Table(
        title="Residual path",
        columns=(">step", "what", "site", "weight"),
        rows=tuple(
            (str(number), step.kind.value, step.site.value if step.site else "", step.weight or "")
            for number, step in enumerate(layer.steps, start=1)
        ),
    )
    state = Table(
        title="State of one sequence",
        columns=("buffer", "dtype", "shape", "one row", "home", "to rewind", ">bytes a row"),
        rows=tuple(
            (
                buffer.name,
                buffer.dtype.value,
                shape_text(buffer.shape),
                growth_text(buffer.per),
                buffer.home.value,
                buffer.rewind.value,
                f"{buffer.row_bytes():,}",
            )
            for buffer in layer.buffers
        ),
    )
    patterns = skeleton.layer_patterns((layer,), _group(layer))
    return (
        Facts(rows=tuple(facts)),
        steps,
        _tensors(layer.stem or f"{skeleton.prefix}layers.{LAYER}.", patterns, skeleton),
        state,
    )


def tensor_blocks(skeleton: Skeleton) -> tuple[Block, ...]:
    """Every pattern of the model."""
    return (_tensors(skeleton.prefix, skeleton.patterns, skeleton),)


def _tensors(stem: str, patterns: tuple[TensorPattern, ...], skeleton: Skeleton) -> Table:
    rows = tuple(
        (
            pattern.name.removeprefix(stem) + ("" if pattern.required else " (optional)"),
            shape_text(pattern.shape),
            pattern.permitted.stored(skeleton.dtype).value,
            f"{pattern.count:,}",
        )
        for pattern in patterns
    )
    named = f"Tensors ({stem} left out of each name)" if stem else "Tensors"
    return Table(title=named, columns=("name", "shape", "dtype", ">count"), rows=rows)


def unread_blocks(config: ModelConfig) -> tuple[Block, ...]:
    """The keys nobody read."""
    return (Lines(title="Keys of the config that nothing here needs", lines=config.declared.unread or ("none",)),)


def assumed_blocks(config: ModelConfig) -> tuple[Block, ...]:
    """The declared meanings of absent keys."""
    rows = tuple((item.path, item.meaning, item.source) for item in config.declared.assumed)
    if not rows:
        return (Lines(title="Absent keys that were given their declared meaning", lines=("none",)),)
    columns = ("absent key", "means", "source")
    return (Table(title="Absent keys that were given their declared meaning", columns=columns, rows=rows),)
