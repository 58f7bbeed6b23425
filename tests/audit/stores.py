"""Checkpoints for audits: held in memory, or written by a writer that is not the package's."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from modelbones.audit import Audit, Options, audit
from modelbones.checkpoint.census import Census, ShardFile
from modelbones.checkpoint.stored import Forms
from modelbones.dtypes import DType
from modelbones.families.registry import build, preset, read_mapping
from modelbones.findings import Finding, Severity
from modelbones.quant.registry import read_claims
from modelbones.skeleton import Skeleton
from tests.release import Stores

FP8_QUANTIZATION = {
    "activation_scheme": "dynamic",
    "fmt": "e4m3",
    "quant_method": "fp8",
    "weight_block_size": [128, 128],
}
PLACE = "config.json"


def census_of(stores: Stores, *, unread: Mapping[str, str] | None = None) -> Census:
    """What reading one sound file that stores these would give."""
    forms = Forms()
    tensors = {name: forms[dtype, shape] for name, (dtype, shape) in stores.items()}
    nbytes = sum(stored.nbytes for stored in tensors.values())
    file = ShardFile(
        name="model.safetensors",
        header_bytes=0,
        file_bytes=nbytes,
        data_bytes=nbytes,
        names=tuple(tensors),
        starts=array("Q"),
        metadata={},
    )
    return Census(place="memory", files=(file,), tensors=tensors, unread=unread or {}, has_index=False, findings=())


def quantised(excluded: Iterable[str]) -> dict[str, Any]:
    """The published `quantization_config`, with these modules left out."""
    return {**FP8_QUANTIZATION, "modules_to_not_convert": sorted(excluded)}


@cache
def published_skeleton() -> Skeleton:
    """GLM-5.3-Flash at full size."""
    return build(read_mapping(preset("glm-5.3-flash"), place=PLACE))


def tiny_config() -> dict[str, Any]:
    """Its config, shrunk."""
    from modelbones.families.glm5_next.tiny import tiny

    return tiny(preset("glm-5.3-flash"), 5)


def judge(
    stores: Stores | Census,
    config: Mapping[str, Any] | None = None,
    *,
    quantization: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Audit:
    """The audit of `stores` against a config, the published one when none is given."""
    skeleton = published_skeleton() if config is None else build(read_mapping(config, place=PLACE))
    claims = read_claims([(f"{PLACE} quantization_config", quantization)], place=PLACE)
    census = stores if isinstance(stores, Census) else census_of(stores)
    return audit(skeleton, census, claims, options)


def said(result: Audit) -> list[tuple[str, str, str]]:
    """(severity, code, name) of each finding."""
    return [(f.severity.value, f.code.value, f.name) for f in result.findings]


def only_error(result: Audit) -> Finding:
    """The one error of an audit that has no other finding."""
    assert len(result.findings) == 1, said(result)
    assert result.findings[0].severity is Severity.ERROR
    return result.findings[0]


def write_sparse(folder: Path, stores: Stores, config: Mapping[str, Any], *, per_file: int) -> None:
    """Another writer: names sorted, data in reverse order, `per_file` tensors a file, holes for data."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(stores)
    groups = [names[start : start + per_file] for start in range(0, len(names), per_file)]
    weight_map = {}
    total = 0
    for number, group in enumerate(groups):
        file = f"weights-{number:03d}.safetensors"
        total += write_file(folder / file, {name: stores[name] for name in group})
        weight_map.update(dict.fromkeys(group, file))
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, sort_keys=True))
    (folder / "config.json").write_text(json.dumps(config))


def write_file(path: Path, stores: Stores) -> int:
    """One file, its data in reverse order of its names; gives the bytes of its data."""
    end = 0
    spans = {}
    for name, (dtype, shape) in reversed(stores.items()):
        size = prod(shape) * DType(dtype).bits // 8
        spans[name] = (end, end + size)
        end += size
    entries = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": spans[name]} for name, (dtype, shape) in stores.items()
    }
    header = json.dumps(entries).encode()
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        out.truncate(8 + len(header) + end)
    return end
