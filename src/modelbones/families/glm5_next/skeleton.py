"""Build the GLM-5.3-Flash skeleton from its typed config: parts, wiring, layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from modelbones.budget import StateBudget
from modelbones.errors import UsageError
from modelbones.families.glm5_next.config import Glm5NextConfig
from modelbones.parts.ends import outer, pre_norms
from modelbones.parts.glm_vision import glm_vision
from modelbones.parts.hyper_connection import highway, hyper_connection
from modelbones.parts.indexer import IndexerSizes, indexer_rows, pooled_indexer_tensors
from modelbones.parts.kda import kda
from modelbones.parts.mla import MlaSizes, latent, mla_tensors
from modelbones.parts.mlp import MoeSizes, dense_mlp, routed_moe, routing_scratch
from modelbones.parts.mtp import mtp_head, proposer_buffers
from modelbones.parts.part import Part, StateKind
from modelbones.skeleton import Final, FinalStep, Layer, Mixer, Mlp, Skeleton
from modelbones.tensors import Role
from modelbones.wiring import HYPER_CONNECTED, PRE_NORM, norm_and_head

PREFIX = "model.language_model."


@dataclass(frozen=True, kw_only=True)
class Glm5NextTextSkeleton(Skeleton):
    """GLM-5.3-Flash as data.

    Attributes:
        hc_mult: Residual streams of the hyper-connections.
    """

    hc_mult: int

    @classmethod
    def from_config(cls, config: Glm5NextConfig | Mapping[str, Any]) -> Self:
        """The skeleton of a typed config, or of a raw one that is read first.

        Raises:
            ConfigError: The raw config is refused.
            UnknownArchitectureError: Its `model_type` is another family's.
        """
        if isinstance(config, Glm5NextConfig):
            return cls.of(config)
        from modelbones.families.registry import read_config

        typed = read_config(config)
        if not isinstance(typed, Glm5NextConfig):
            raise UsageError(
                f'Glm5NextTextSkeleton: found a "{typed.model_type}" config; expected glm5_next; use build(config)'
            )
        return cls.of(typed)

    @classmethod
    def of(cls, config: Glm5NextConfig) -> Self:
        """The skeleton of a typed config."""
        parts = _parts(config)
        text = tuple(_text_layer(config, parts, index) for index in range(config.num_hidden_layers))
        return cls(
            model_type=config.model_type,
            hidden_size=config.hidden_size,
            dtype=config.dtype,
            prefix=PREFIX,
            layers=text,
            mtp=_mtp_layer(config, parts) if config.num_nextn_predict_layers else None,
            outer=outer(
                PREFIX,
                vocab_size=config.vocab_size,
                hidden_size=config.hidden_size,
                tied=config.tie_word_embeddings,
            ),
            tower=() if config.vision is None else glm_vision(config.vision),
            work=(
                highway(hidden_size=config.hidden_size, hc_mult=config.hc_mult),
                *routing_scratch(
                    n_routed_experts=config.n_routed_experts, num_experts_per_tok=config.num_experts_per_tok
                ),
            ),
            final=(FinalStep(Final.HYPER_HEAD_MEAN), *norm_and_head(f"{PREFIX}norm.weight")),
            hc_mult=config.hc_mult,
        )

    def state_budget(self, config: Glm5NextConfig | None = None, num_spec: int = 0) -> StateBudget:
        """`budget(num_spec)`; a `config` that is not this skeleton's is refused.

        The seed reads the geometry from the config; here the layers' buffers hold it.
        """
        if config is not None and type(self).of(config) != self:
            raise UsageError(
                "state_budget: found a config of another skeleton; expected the one this was built from; "
                "build a skeleton from that config"
            )
        return self.budget(num_spec)


def _parts(config: Glm5NextConfig) -> dict[Mixer | Mlp | str, Part]:
    """Each building block once; layers of one kind share it."""
    hidden = config.hidden_size
    mla = MlaSizes(
        hidden_size=hidden,
        num_attention_heads=config.num_attention_heads,
        q_lora_rank=config.q_lora_rank,
        kv_lora_rank=config.kv_lora_rank,
        qk_nope_head_dim=config.qk_nope_head_dim,
        qk_rope_head_dim=config.qk_rope_head_dim,
        v_head_dim=config.v_head_dim,
        attention_bias=config.attention_bias,
    )
    attention = mla_tensors(mla, Role.DSA)
    indexer = IndexerSizes(
        hidden_size=hidden,
        q_lora_rank=config.q_lora_rank,
        index_n_heads=config.index_n_heads,
        index_head_dim=config.index_head_dim,
        index_kpool=config.index_kpool,
    )
    rows = indexer_rows(index_head_dim=config.index_head_dim, index_kpool=config.index_kpool)
    kept = latent("dsa_kv", config.kv_lora_rank)
    return {
        Mixer.KDA: kda(
            hidden_size=hidden,
            num_heads=config.linear_num_heads,
            head_dim=config.linear_head_dim,
            kernel=config.linear_conv_kernel_dim,
        ),
        Mixer.DSA: Part(
            name="dsa",
            tensors=(*attention, *pooled_indexer_tensors(indexer, Role.DSA)),
            buffers=(kept, *rows),
            state=StateKind.SPARSE_KV,
        ),
        "shared_dsa": Part(name="dsa, shared indexer", tensors=attention, buffers=(kept,), state=StateKind.SPARSE_KV),
        Mlp.DENSE: dense_mlp(hidden_size=hidden, intermediate_size=config.intermediate_size),
        Mlp.ROUTED_MOE: routed_moe(
            MoeSizes(
                hidden_size=hidden,
                moe_intermediate_size=config.moe_intermediate_size,
                n_routed_experts=config.n_routed_experts,
                n_shared_experts=config.n_shared_experts,
                num_experts_per_tok=config.num_experts_per_tok,
            )
        ),
        "norms": pre_norms(hidden_size=hidden),
        "hc": hyper_connection(hidden_size=hidden, hc_mult=config.hc_mult),
        "mtp": mtp_head(
            hidden_size=hidden,
            vocab_size=config.vocab_size,
            buffers=proposer_buffers(hidden_size=hidden, vocab_size=config.vocab_size),
        ),
    }


def _text_layer(config: Glm5NextConfig, parts: dict[Mixer | Mlp | str, Part], index: int) -> Layer:
    mixer, mlp, runs = config.mixers[index], config.mlps[index], config.runs_indexer
    is_shared = mixer is Mixer.DSA and not runs[index]
    block = parts["shared_dsa"] if is_shared else parts[mixer]
    source = max((i for i in range(index + 1) if runs[i]), default=None) if mixer is Mixer.DSA else None
    return Layer(
        index=index,
        mixer=mixer,
        mlp=mlp,
        hyper_connection=True,
        is_mtp=False,
        parts=(block, parts["norms"], parts["hc"], parts[mlp]),
        steps=HYPER_CONNECTED,
        indexer_from=source,
    )


def _mtp_layer(config: Glm5NextConfig, parts: dict[Mixer | Mlp | str, Part]) -> Layer:
    """A DSA block and a routed MLP, with no hyper-connection; the config does not say so.

    Source: the published checkpoint's layer 45, which stores no `hc_*` tensor.
    """
    index = config.num_hidden_layers
    return Layer(
        index=index,
        mixer=Mixer.DSA,
        mlp=Mlp.ROUTED_MOE,
        hyper_connection=False,
        is_mtp=True,
        parts=(parts[Mixer.DSA], parts["norms"], parts["mtp"], parts[Mlp.ROUTED_MOE]),
        steps=PRE_NORM,
        indexer_from=index,
    )
