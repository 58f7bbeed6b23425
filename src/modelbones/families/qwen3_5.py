"""Qwen3.5 dense (and 3.6, 3.8): Gated DeltaNet and gated attention, one gated MLP a layer."""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Section, integer
from modelbones.families.family import Family
from modelbones.families.reading.decoder import finish, text_section
from modelbones.families.reading.deltanet import DeltaNetConfig, deltanet_facts
from modelbones.families.stacks.deltanet import deltanet_decoder
from modelbones.families.stacks.shrink_grouped import tiny
from modelbones.parts.mlp import dense_mlp
from modelbones.skeleton import Mlp, Skeleton
from modelbones.tensors import Group

_SOURCE = "transformers 5.23 configuration_qwen3_5.py"
_TEXT_ONLY = "qwen3_5_text"
_MTP_KEYS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen35Config(DeltaNetConfig):
    """A `qwen3_5` or `qwen3_5_text` config."""

    intermediate_size: int


def read(top: Section) -> Qwen35Config:
    """The typed config of `top`; only a wrapper's sizes are under `text_config`."""
    is_text = top.values.get("model_type") == _TEXT_ONLY
    sections = (top,) if is_text else (text_section(top, _TEXT_ONLY), top)
    return finish(
        Qwen35Config,
        top,
        *sections,
        intermediate_size=integer(sections[0].at("intermediate_size")),
        **deltanet_facts(*sections, source=_SOURCE, mtp_keys=_MTP_KEYS),
    )


def build(config: Qwen35Config) -> Skeleton:
    """The skeleton of a typed config; the vision tower is an open module."""
    is_text = config.model_type == _TEXT_ONLY
    dense = dense_mlp(hidden_size=config.hidden_size, intermediate_size=config.intermediate_size)
    return deltanet_decoder(
        config,
        (Mlp.DENSE,) * config.num_hidden_layers,
        {Mlp.DENSE: dense},
        fused=False,
        mtp_mlp=(Mlp.DENSE, dense),
        prefix="model." if is_text else "model.language_model.",
        open_prefixes=() if is_text else (("model.visual.", Group.VISION),),
    )


FAMILY = Family(
    name="qwen3_5",
    model_types=("qwen3_5", _TEXT_ONLY),
    title="Qwen3.5, 3.6, 3.8 dense",
    read=read,
    build=build,
    tiny=tiny,
    verified=(
        "text names and shapes at full size against transformers 5.23 on the meta device; the vision "
        "tower is listed, not judged",
        "tiny checkpoints of these names load whole and equal in transformers 5.23",
        "state bytes layer by layer against its cache classes",
        "state bytes against kvfit 0.3.0",
    ),
)
