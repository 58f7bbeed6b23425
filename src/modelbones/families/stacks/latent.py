"""A stack of latent-attention layers, dense or behind an indexer, with routed MLPs and one MTP layer inline.

DeepSeek's V2, V3 and V3.2, the GLM-5 line, GLM-4.7-Flash and the text model of Kimi-K2.5 are
this stack; their files say which keys each reads and under which names its tensors stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from modelbones.config import Section
from modelbones.families.model_config import ModelConfig
from modelbones.families.reading.experts import read_experts
from modelbones.families.reading.indexers import runs_indexer, selection_of
from modelbones.families.reading.latent import read_indexer, read_mla
from modelbones.families.reading.mlps import mlps, routed_every
from modelbones.families.reading.text import TextSizes, mtp_layers, read_text
from modelbones.parts.ends import outer, pre_norms
from modelbones.parts.indexer import IndexerSizes, index_key, indexer_tensors
from modelbones.parts.mla import MlaSizes, latent_rows, mla, mla_tensors
from modelbones.parts.mlp import MoeNames, MoeSizes, dense_mlp, routed_moe
from modelbones.parts.mtp import mtp_head
from modelbones.parts.part import Part, StateKind
from modelbones.skeleton import Layer, Mixer, Mlp, Skeleton
from modelbones.tensors import Group, Role
from modelbones.wiring import PRE_NORM, norm_and_head


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentConfig(ModelConfig):
    """The config of such a stack, one record a block.

    `mlps` has one entry a text layer, and so has `runs_indexer` where there is an `indexer`.
    """

    text: TextSizes
    mla: MlaSizes
    moe: MoeSizes
    mlps: tuple[Mlp, ...]
    indexer: IndexerSizes | None
    runs_indexer: tuple[bool, ...]
    num_nextn_predict_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentForm:
    """What tells one family of this stack from another.

    Attributes:
        source: Who says what its absent keys mean.
        null_rank: Whether a null `q_lora_rank` is a query without a low rank.
        has_indexer: Whether its attention is sparse, behind an indexer.
        shares_indexers: Whether a layer may use the selection of an earlier one.
        has_mtp: Whether it declares MTP layers.
        prefix: What stands before "layers.N." in its names.
        head: What its output head is called.
        moe: The names of its routed block.
        open_prefixes: Modules whose tensors are listed and counted, not judged.
    """

    source: str
    null_rank: bool = False
    has_indexer: bool = False
    shares_indexers: bool = False
    has_mtp: bool = True
    prefix: str = "model."
    head: str = "lm_head"
    moe: MoeNames = field(default_factory=MoeNames)
    open_prefixes: tuple[tuple[str, Group], ...] = ()


def read_latent(text: Section, form: LatentForm) -> dict[str, Any]:
    """The fields of `LatentConfig` that `text` states; faults go to its ledger."""
    sizes = read_text(text)
    hidden, num_layers = sizes.hidden_size, sizes.num_hidden_layers
    attention = read_mla(text, hidden_size=hidden, source=form.source, null_rank=form.null_rank)
    indexer = read_indexer(text, attention) if form.has_indexer else None
    every = routed_every(text, source=form.source)
    runs: tuple[bool, ...] = ()
    if form.has_indexer and num_layers:
        sparse = (True,) * num_layers
        runs = runs_indexer(text, sparse, source=form.source) if form.shares_indexers else sparse
    return {
        "text": sizes,
        "mla": attention,
        "moe": read_experts(text, hidden_size=hidden),
        "mlps": mlps(text, num_layers, every=every) if num_layers else (),
        "indexer": indexer,
        "runs_indexer": runs,
        "num_nextn_predict_layers": mtp_layers(text) if form.has_mtp else 0,
    }


def latent_skeleton(config: LatentConfig, form: LatentForm) -> Skeleton:
    """The skeleton of `config`: pre-norm layers, an MTP layer inline after the last."""
    parts = _parts(config, form)
    text = config.text
    layers = tuple(_layer(config, parts, index, mlp) for index, mlp in enumerate(config.mlps))
    return Skeleton(
        model_type=config.model_type,
        hidden_size=text.hidden_size,
        dtype=config.dtype,
        prefix=form.prefix,
        layers=layers,
        mtp=_mtp_layer(config, parts) if config.num_nextn_predict_layers else None,
        outer=outer(
            form.prefix,
            vocab_size=text.vocab_size,
            hidden_size=text.hidden_size,
            tied=config.tie_word_embeddings,
            head=form.head,
        ),
        tower=(),
        work=(),
        final=norm_and_head(f"{form.prefix}norm.weight"),
        open_prefixes=form.open_prefixes,
    )


def _parts(config: LatentConfig, form: LatentForm) -> dict[str | Mlp, Part]:
    """Each building block once; layers of one kind share it."""
    hidden = config.text.hidden_size
    return {
        **_mixers(config),
        "norms": pre_norms(hidden_size=hidden),
        "mtp": mtp_head(hidden_size=hidden, vocab_size=config.text.vocab_size),
        Mlp.DENSE: dense_mlp(hidden_size=hidden, intermediate_size=config.text.intermediate_size),
        Mlp.ROUTED_MOE: routed_moe(config.moe, form.moe),
    }


def _mixers(config: LatentConfig) -> dict[str | Mlp, Part]:
    """The block that selects for itself, and the one that uses another's selection."""
    if config.indexer is None:
        return {"own": mla(config.mla)}
    attention, rows = mla_tensors(config.mla, Role.DSA), latent_rows("dsa_kv", config.mla)
    key = index_key(index_head_dim=config.indexer.index_head_dim)
    scores = indexer_tensors(config.indexer, Role.DSA)
    kind = StateKind.SPARSE_KV
    return {
        "own": Part(name="dsa", tensors=(*attention, *scores), buffers=(*rows, key), state=kind),
        "shared": Part(name="dsa, shared indexer", tensors=attention, buffers=rows, state=kind),
    }


def _layer(config: LatentConfig, parts: dict[str | Mlp, Part], index: int, mlp: Mlp) -> Layer:
    is_sparse = config.indexer is not None
    shares = is_sparse and not config.runs_indexer[index]
    return Layer(
        index=index,
        mixer=Mixer.DSA if is_sparse else Mixer.MLA,
        mlp=mlp,
        hyper_connection=False,
        is_mtp=False,
        parts=(parts["shared" if shares else "own"], parts["norms"], parts[mlp]),
        steps=PRE_NORM,
        indexer_from=selection_of(config.runs_indexer, index) if is_sparse else None,
    )


def _mtp_layer(config: LatentConfig, parts: dict[str | Mlp, Part]) -> Layer:
    """A layer of the stack with a routed MLP and, where attention is sparse, its own indexer.

    Source: vllm-project/vllm vllm/model_executor/models/deepseek_mtp.py; GLM-5.2's
    `index_share_for_mtp_iteration` shares that selection between drafting steps.
    """
    index, is_sparse = config.text.num_hidden_layers, config.indexer is not None
    return Layer(
        index=index,
        mixer=Mixer.DSA if is_sparse else Mixer.MLA,
        mlp=Mlp.ROUTED_MOE,
        hyper_connection=False,
        is_mtp=True,
        parts=(parts["own"], parts["norms"], parts["mtp"], parts[Mlp.ROUTED_MOE]),
        steps=PRE_NORM,
        indexer_from=index if is_sparse else None,
    )
