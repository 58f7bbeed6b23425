"""`Glm5NextDsaConfig`: what one sparse-attention layer of glm5_next asks of its live cache.

Source: Metrale/metrale-inference-alpha model-arch glm5next_dsa::Glm5NextDsaConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from modelbones.config import Said, shown
from modelbones.errors import ConfigError, Fault, UsageError
from modelbones.families.glm5_next import Glm5NextConfig
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import read_mapping

DEFAULT_MAX_CONTEXT = 16_384
"""Tokens a sequence may reach when nobody says; the seeds' engine's default."""

MAX_KPOOL = 8
"""Tokens the compress kernel can pool."""

_TAIL = "always_select_tail"
_TAIL_KEY = "index_kpool_always_select_tail"
_TAIL_EXPECTED = "true or false: engines fill it differently (transformers true, llama.cpp false)"
_MAY_BE_ZERO = frozenset({"qk_rope_head_dim", "kv_lora_rank", "max_context"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm5NextDsaConfig:
    """The sizes of one sparse-attention layer, as one rank sees them.

    Attributes:
        hidden: Width of the residual stream.
        index_heads: Heads of the indexer, whole on every rank.
        index_head_dim: Width of an indexer key, and of a gate.
        index_kpool: Tokens a pool.
        index_topk: Tokens a query selects, in whole pools.
        always_select_tail: Whether a query also sees the pool that is not complete.
        local_heads: Attention heads this rank holds.
        q_lora_rank: Width of the query latent.
        kv_lora_rank: Width of the key/value latent.
        qk_nope_head_dim: Width of a head's key without rotary part.
        qk_rope_head_dim: Width of the rotary part, 0 in this architecture.
        v_head_dim: Width of a head's value.
        max_context: Tokens a sequence may reach; it sizes the cache, nothing else.
    """

    hidden: int
    index_heads: int
    index_head_dim: int
    index_kpool: int
    index_topk: int
    always_select_tail: bool
    local_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    max_context: int = DEFAULT_MAX_CONTEXT

    @classmethod
    def from_config(
        cls,
        config: Glm5NextConfig | Mapping[str, Any],
        *,
        max_context: int | None = None,
        local_heads: int | None = None,
        always_select_tail: bool | None = None,
    ) -> Glm5NextDsaConfig:
        """The sizes a glm5_next config declares, validated.

        Args:
            config: As `read_config` returns it, or raw.
            max_context: Tokens a sequence may reach; 16,384 when unset.
            local_heads: Attention heads this rank holds; all of them when unset.
            always_select_tail: What the engine does, for a config that does not say.

        Raises:
            ConfigError: The config is refused, or leaves the tail open.
            UsageError: The config is another family's.
        """
        typed: ModelConfig = read_mapping(config, place="<mapping>") if isinstance(config, Mapping) else config
        if not isinstance(typed, Glm5NextConfig):
            found = getattr(typed, "model_type", type(typed).__name__)
            raise UsageError(f"Glm5NextDsaConfig: found {found}; expected a glm5_next config; read one")
        place = typed.declared.place
        made = cls(
            hidden=typed.hidden_size,
            index_heads=typed.index_n_heads,
            index_head_dim=typed.index_head_dim,
            index_kpool=typed.index_kpool,
            index_topk=typed.index_topk,
            always_select_tail=_tail(typed.index_kpool_always_select_tail, always_select_tail, place),
            local_heads=_share(local_heads, typed.num_attention_heads, place),
            q_lora_rank=typed.q_lora_rank,
            kv_lora_rank=typed.kv_lora_rank,
            qk_nope_head_dim=typed.qk_nope_head_dim,
            qk_rope_head_dim=typed.qk_rope_head_dim,
            v_head_dim=typed.v_head_dim,
            max_context=DEFAULT_MAX_CONTEXT if max_context is None else max_context,
        )
        made.validate()
        return made

    @property
    def latent_width(self) -> int:
        """Elements of one latent row, its rotary part included."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    def validate(self) -> None:
        """Raise `ConfigError` with everything that no cache and no kernel could serve."""
        faults = self._size_faults()
        if not faults and self.index_topk % self.index_kpool:
            faults.append(_fault("index_topk", self.index_topk, f"a multiple of index_kpool, {self.index_kpool}"))
        if not faults and self.latent_width == 0:
            faults.append(_fault("kv_lora_rank", 0, "a latent width above 0: kv_lora_rank + qk_rope_head_dim"))
        if faults:
            raise ConfigError(place="Glm5NextDsaConfig", faults=tuple(faults))

    def _size_faults(self) -> list[Fault]:
        faults = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == _TAIL:
                if not isinstance(value, bool):
                    faults.append(_fault(_TAIL, value, _TAIL_EXPECTED))
                continue
            least = 0 if field.name in _MAY_BE_ZERO else 1
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                faults.append(_fault(field.name, value, f"an integer, {least} or more"))
            elif field.name == "index_kpool" and value > MAX_KPOOL:
                faults.append(_fault(field.name, value, f"at most {MAX_KPOOL}: the compress kernel pools no more"))
        return faults


def _fault(path: str, found: object, expected: str) -> Fault:
    return Fault(path, shown(found), expected)


def _tail(declared: bool | None, passed: bool | None, place: str) -> bool:
    """Whether the tail is selected; refused when nobody says or two say different things."""
    if declared is None and passed is None:
        found, expected = Said("missing"), f"{_TAIL_EXPECTED}; pass always_select_tail"
        raise ConfigError(place=place, faults=(_fault(_TAIL_KEY, found, expected),))
    if declared is not None and passed is not None and declared != passed:
        expected = f"what always_select_tail was passed as, {shown(passed)}; pass none, or correct the config"
        raise ConfigError(place=place, faults=(_fault(_TAIL_KEY, declared, expected),))
    return passed if declared is None and passed is not None else bool(declared)


def _share(passed: int | None, heads: int, place: str) -> int:
    """This rank's attention heads, at most the model's."""
    if passed is None:
        return heads
    if isinstance(passed, int) and passed > heads:
        raise ConfigError(place=place, faults=(_fault("local_heads", passed, f"at most {heads}, the model's heads"),))
    return passed
