"""One start as settings: what was given, else what the log says, else the engine's default, said so."""

from __future__ import annotations

from dataclasses import dataclass, fields

from modelbones.dtypes import BY_CONFIG_NAME, DType
from modelbones.engines.vllm import (
    Kind,
    KvDtype,
    LayerState,
    ModelStates,
    SpecMethod,
    UnknownVersionError,
    VllmSettings,
    known_versions,
    rules_of,
)
from modelbones.explain.log import EngineLog

KV_DTYPES = {
    **{member.value: member for member in KvDtype},
    "bfloat16": KvDtype.BF16,
    "float16": KvDtype.BF16,
    "fp8_e4m3": KvDtype.FP8,
    "fp8_e5m2": KvDtype.FP8,
}
"""The engine's words for the cache's dtype; float16 is as wide as bf16."""
WITHOUT_STATE = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods that draft without a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the caller says of the start; None leaves a setting to the log. Fields as in `VllmSettings`."""

    version: str | None = None
    assume: str | None = None
    max_model_len: int | None = None
    tp: int | None = None
    dcp: int | None = None
    block_size: int | None = None
    kv_dtype: KvDtype | None = None
    state_dtype: DType | None = None
    spec_method: SpecMethod | None = None
    num_spec: int | None = None
    drafter: tuple[LayerState, ...] = ()
    drafter_block: int | None = None
    prefix_caching: bool | None = None
    max_batched_tokens: int | None = None
    capability: int | None = None
    cuda_major: int | None = None
    kernel_block: int | None = None
    checkpoints: bool | None = None
    latent_row_bytes: int | None = None

    @classmethod
    def of(cls, settings: VllmSettings) -> Given:
        """Every setting of `settings`."""
        return cls(**{field.name: getattr(settings, field.name) for field in fields(settings)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The settings of a start, and what they rest on.

    Attributes:
        settings: None when something is needed.
        needed: What the log does not say and was not given, with the flag that gives it.
        assumed: What stands at a default because neither says.
    """

    settings: VllmSettings | None
    needed: tuple[str, ...]
    assumed: tuple[str, ...]


def start_of(log: EngineLog, given: Given, model: ModelStates | None) -> Start:
    """The start of `log`.

    Raises:
        UsageError: A value no start could have.
    """
    resolver = _Resolver(log, given)
    settings = resolver.settings()
    return Start(
        settings=None if resolver.needed else settings,
        needed=tuple(resolver.needed),
        assumed=tuple(resolver.assumed(model)),
    )


class _Resolver:
    """Puts settings together and keeps what is needed on the way."""

    def __init__(self, log: EngineLog, given: Given) -> None:
        self.log = log
        self.given = given
        self.needed: list[str] = []

    def settings(self) -> VllmSettings | None:
        """All of them; None when one is needed that has no default."""
        log, given = self.log, self.given
        version, context = self._version(), given.max_model_len or log.context
        if context is None:
            self.needed.append("the longest context, which no line names: --context TOKENS")
        method, tokens = self._drafting()
        known = {
            "assume": given.assume,
            "tp": given.tp or log.tp,
            "dcp": given.dcp or log.dcp,
            "block_size": self._block_size(),
            "kv_dtype": given.kv_dtype or self._kv_dtype(),
            "state_dtype": given.state_dtype or BY_CONFIG_NAME.get(log.state_dtype or ""),
            "prefix_caching": given.prefix_caching if given.prefix_caching is not None else log.prefix_caching,
            "max_batched_tokens": given.max_batched_tokens or log.max_batched_tokens,
            "drafter": given.drafter or None,
            **{name: getattr(given, name) for name in _GIVEN_ONLY},
        }
        if version is None or context is None or self.needed:
            return None
        stated = {name: value for name, value in known.items() if value is not None}
        return VllmSettings(version=version, max_model_len=context, spec_method=method, num_spec=tokens, **stated)

    def _version(self) -> str | None:
        version = self.given.version or self.log.version or self.given.assume
        if version is None:
            self.needed.append("the version, which no line names: --engine vllm@VERSION")
            return None
        try:
            rules_of(version)
        except UnknownVersionError:
            if self.given.assume is None:
                known = ", ".join(known_versions())
                self.needed.append(f"rules for {version}, which are not known here: --assume one of {known}")
        return version

    def _block_size(self) -> int | None:
        """A backend's choice counts where neither a flag nor a recurrent page decides."""
        log = self.log
        return self.given.block_size or log.block_size or (log.forced_block if log.block_tokens is None else None)

    def _kv_dtype(self) -> KvDtype | None:
        word = self.log.kv_dtype
        if word is not None and word not in KV_DTYPES:
            self.needed.append(f'the layout of kv_cache_dtype "{word}", which is not known here: --kv-dtype')
        return None if word is None else KV_DTYPES.get(word)

    def _drafting(self) -> tuple[SpecMethod, int]:
        log, given = self.log, self.given
        word = log.spec_method or ""
        tokens = log.num_spec if given.num_spec is None else given.num_spec
        method = given.spec_method or _method(word)
        if method is SpecMethod.NONE:
            return method, 0
        if not tokens:
            self.needed.append("the tokens drafted a step, which no line names: --spec mtp:K")
        if method is SpecMethod.DRAFT and not given.drafter and word not in WITHOUT_STATE:
            name = f" {log.drafter}" if log.drafter else ""
            self.needed.append(f"the states of the drafter{name} ({word or 'draft'}): --spec draft:CONFIG")
        return method, tokens or 1

    def assumed(self, model: ModelStates | None) -> list[str]:
        """What stands at a default, where it may change a figure."""
        log, given = self.log, self.given
        kinds = set() if model is None else {state.kind for state in (*model.states, *given.drafter)}
        said = []
        if not log.names_flags:
            values = (("tp", "tp 1"), ("kv_dtype", "kv dtype auto"), ("prefix_caching", "prefix caching on"))
            said += [text for name, text in values if getattr(given, name) is None and getattr(log, name) is None]
        elif given.prefix_caching is None and log.prefix_caching is None:
            said.append("prefix caching on")
        if given.capability is None and kinds & {Kind.INDEX, Kind.RECURRENT}:
            said.append("compute capability 9 (H100, H200)")
        if Kind.WINDOW in kinds and given.max_batched_tokens is None and log.max_batched_tokens is None:
            said.append("8,192 batched tokens")
        return said


_GIVEN_ONLY = (
    "drafter_block",
    "capability",
    "cuda_major",
    "kernel_block",
    "checkpoints",
    "latent_row_bytes",
)
"""Settings no start-up line names."""


def _method(word: str) -> SpecMethod:
    if not word:
        return SpecMethod.NONE
    return SpecMethod.MTP if word.endswith("mtp") else SpecMethod.DRAFT
