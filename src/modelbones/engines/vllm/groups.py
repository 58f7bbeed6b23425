"""Which layers share blocks, and how many blocks a request holds in each group.

Source: vllm-project/vllm vllm/v1/core/kv_cache_utils.py::get_kv_cache_groups and, for the
blocks of a request, vllm/v1/kv_cache_interface.py::KVCacheSpec.max_memory_usage_bytes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import lcm

from modelbones.engines.vllm.alignment import Alignment, keeps_checkpoints
from modelbones.engines.vllm.refusals import EngineRefusedError
from modelbones.engines.vllm.settings import VllmSettings
from modelbones.engines.vllm.states import Kind, ModelStates
from modelbones.engines.vllm.stored import Stored
from modelbones.engines.vllm.versions import SparseLayout
from modelbones.units import ceil_div, round_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Layers of one kind in a group, and the page each has in a block."""

    kind: Kind
    layers: int
    page_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers that share one block table.

    Attributes:
        kind: What binds its block count.
        pages: Its layers by kind; empty for a drafter's window in borrowed slots.
        block_tokens: Tokens of one of its blocks.
        fixed_blocks: Blocks a request holds whatever its length; None when it grows.
        held_tokens: Tokens a sliding window may hold, those in flight included; None
            without a window.
        dcp: Ranks that share the context.
    """

    kind: Kind
    pages: tuple[Pages, ...]
    block_tokens: int
    fixed_blocks: int | None = None
    held_tokens: int | None = None
    dcp: int = 1

    @property
    def num_layers(self) -> int:
        """Layers of the group, a layer once for each kind of state."""
        return sum(pages.layers for pages in self.pages)

    @property
    def nbytes(self) -> int:
        """Bytes of one block of all its layers."""
        return sum(pages.layers * pages.page_bytes for pages in self.pages)

    def blocks(self, context: int) -> int:
        """Blocks a request of `context` tokens holds in this group."""
        if self.fixed_blocks is not None:
            return self.fixed_blocks
        if self.held_tokens is not None:
            # One more: a window seldom starts at a block's first token.
            return ceil_div(min(self.held_tokens, context), self.block_tokens) + 1
        return ceil_div(ceil_div(context, self.dcp), self.block_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddingLayers:
    """Layers that exist only to fill a group: "Add N padding layers, may waste at most X %"."""

    kind: Kind
    layers: int
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Every group, and what one block id costs over all of them."""

    groups: tuple[Group, ...]
    bytes_per_block: int
    padding_layers: tuple[PaddingLayers, ...] = ()


def group_layers(
    model: ModelStates, settings: VllmSettings, stored: tuple[Stored, ...], alignment: Alignment
) -> Grouping:
    """The groups of these layers.

    Raises:
        EngineRefusedError: The engine cannot lay them out together.
    """
    borrowed = tuple(layer for layer in stored if layer.is_borrowing)
    own = tuple(layer for layer in stored if not layer.is_borrowing)
    kinds = {layer.kind for layer in own}
    shaper = _Shaper(model=model, settings=settings, alignment=alignment)
    if Kind.INDEX in kinds and Kind.RECURRENT in kinds:
        grouping = _sparse_hybrid(shaper, own)
    elif kinds <= {Kind.LATENT, Kind.INDEX} or len(set(own)) == 1:
        grouping = _uniform(shaper, own)
    elif Kind.INDEX in kinds:
        raise _unshared(kinds)
    else:
        grouping = _buckets(shaper, own)
    if not borrowed:
        return grouping
    window = shaper.group(borrowed[0], (), block_tokens=settings.drafter_block or 0)
    return Grouping(groups=(*grouping.groups, window), bytes_per_block=grouping.bytes_per_block)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shaper:
    """Makes groups under one model, one start and one alignment."""

    model: ModelStates
    settings: VllmSettings
    alignment: Alignment

    def group(self, layer: Stored, pages: tuple[Pages, ...], *, block_tokens: int) -> Group:
        """A group bound by `layer`."""
        settings = self.settings
        in_flight = settings.rules.in_flight_batches * settings.max_batched_tokens
        match layer.kind:
            case Kind.RECURRENT:
                tokens = block_tokens if settings.prefix_caching else settings.max_model_len
                return Group(kind=layer.kind, pages=pages, block_tokens=tokens, fixed_blocks=self.state_blocks)
            case Kind.TAIL:
                return Group(kind=layer.kind, pages=pages, block_tokens=layer.ring, fixed_blocks=1)
            case Kind.WINDOW:
                held = layer.window - 1 + in_flight
                return Group(kind=layer.kind, pages=pages, block_tokens=block_tokens, held_tokens=held)
        return Group(kind=layer.kind, pages=pages, block_tokens=block_tokens, dcp=settings.dcp)

    @property
    def state_blocks(self) -> int:
        """Blocks a request holds in one recurrent group: 1, one a drafted token, and with
        prefix caching the copy kept at a block's end and a prefill checkpoint."""
        kept = 1 + keeps_checkpoints(self.model, self.settings) if self.settings.prefix_caching else 0
        return 1 + self.settings.num_spec + kept

    def recurrent(self, layers: tuple[Stored, ...], count: int, page_bytes: int) -> tuple[Group, ...]:
        """`count` recurrent groups, the layers dealt out evenly."""
        block = self.alignment.block_tokens
        sizes = _dealt(len(layers), count)
        return tuple(
            self.group(layers[0], (Pages(kind=Kind.RECURRENT, layers=n, page_bytes=page_bytes),), block_tokens=block)
            for n in sizes
        )


def _dealt(layers: int, groups: int) -> tuple[int, ...]:
    return tuple(layers // groups + (index < layers % groups) for index in range(groups))


def _of(stored: tuple[Stored, ...], *kinds: Kind) -> tuple[Stored, ...]:
    return tuple(layer for layer in stored if layer.kind in kinds)


def _pages(stored: tuple[Stored, ...], block_tokens: int) -> tuple[Pages, ...]:
    return tuple(
        Pages(kind=layer.kind, layers=count, page_bytes=layer.page_bytes(block_tokens))
        for layer, count in Counter(stored).items()
    )


def _uniform(shaper: _Shaper, stored: tuple[Stored, ...]) -> Grouping:
    """One group: every layer holds every token; a block is all their pages."""
    block = shaper.alignment.block_tokens
    group = shaper.group(stored[0], _pages(stored, block), block_tokens=block)
    return Grouping(groups=(group,), bytes_per_block=group.nbytes)


def _sparse_hybrid(shaper: _Shaper, stored: tuple[Stored, ...]) -> Grouping:
    """glm5_next: latents and indexers in one group, tails in one, recurrent layers in several."""
    rules, alignment = shaper.settings.rules, shaper.alignment
    if rules.sparse_layout is None:
        raise EngineRefusedError(
            place="model",
            found=f"{shaper.model.model_type} in {rules.version}",
            expected="0.30 or later",
            fix="name a version that knows the model",
        )
    if _of(stored, Kind.KV, Kind.WINDOW):
        raise _unshared({layer.kind for layer in stored})
    attending, states = _of(stored, Kind.LATENT, Kind.INDEX), _of(stored, Kind.RECURRENT)
    tails = _of(stored, Kind.TAIL)
    attention = shaper.group(
        attending[0], _pages(attending, alignment.block_tokens), block_tokens=alignment.block_tokens
    )
    if rules.sparse_layout is SparseLayout.DEDICATED:
        return _dedicated(shaper, attention, states, tails)
    return _packed(shaper, attention, attending, states, tails)


def _dedicated(shaper: _Shaper, attention: Group, states: tuple[Stored, ...], tails: tuple[Stored, ...]) -> Grouping:
    """Recurrent pages alias latent pages and tails index pages, so a group is as many layers."""
    page_of = {pages.kind: pages.page_bytes for pages in attention.pages}
    latents = sum(pages.layers for pages in attention.pages if pages.kind is Kind.LATENT)
    aliased = tuple(Pages(kind=Kind.TAIL, layers=len(tails), page_bytes=page_of[Kind.INDEX]) for _ in tails[:1])
    tail = tuple(shaper.group(layer, aliased, block_tokens=layer.ring) for layer in tails[:1])
    page = max(shaper.alignment.padded_page, page_of[Kind.LATENT])
    recurrent = shaper.recurrent(states, ceil_div(len(states), latents), page)
    return Grouping(groups=(attention, *tail, *recurrent), bytes_per_block=attention.nbytes)


def _packed(
    shaper: _Shaper,
    attention: Group,
    attending: tuple[Stored, ...],
    states: tuple[Stored, ...],
    tails: tuple[Stored, ...],
) -> Grouping:
    """A block is the widest group; as many recurrent layers share one as fit the attention's bytes."""
    page = shaper.alignment.padded_page
    recurrent = shaper.recurrent(states, ceil_div(len(states), attention.nbytes // page), page)
    tail = tuple(shaper.group(layer, _pages(tails, layer.ring), block_tokens=layer.ring) for layer in tails[:1])
    groups = (*recurrent, attention, *tail)
    step = lcm(*(layer.kernel_rows * layer.row_bytes for layer in attending))
    return Grouping(groups=groups, bytes_per_block=round_up(max(group.nbytes for group in groups), step))


def _buckets(shaper: _Shaper, stored: tuple[Stored, ...]) -> Grouping:
    """Every other mix: buckets cut into groups of one size, all pages made one size.

    The size is that of the smallest bucket, or of the largest when it is less than half as
    large again.
    """
    buckets = Counter(stored)
    least, most = min(buckets.values()), max(buckets.values())
    size = most if most < 1.5 * least else least
    page = _one_page(shaper, tuple(buckets))
    groups: list[Group] = []
    padding: list[PaddingLayers] = []
    for layer, count in buckets.items():
        number = ceil_div(count, size)
        tokens = _tokens_of(shaper, layer, page)
        for layers in _dealt(count, number):
            pages = (Pages(kind=layer.kind, layers=layers, page_bytes=page),)
            groups.append(shaper.group(layer, pages, block_tokens=tokens))
        if missing := number * size - count:
            percent = round(100 * missing / count, 2)
            padding.append(PaddingLayers(kind=layer.kind, layers=missing, percent=percent))
    return Grouping(groups=tuple(groups), bytes_per_block=size * page, padding_layers=tuple(padding))


def _one_page(shaper: _Shaper, layers: tuple[Stored, ...]) -> int:
    block = shaper.alignment.block_tokens
    attending = [layer.page_bytes(block) for layer in layers if layer.kind is not Kind.RECURRENT]
    return max([*attending, shaper.alignment.padded_page])


def _tokens_of(shaper: _Shaper, layer: Stored, page: int) -> int:
    """Tokens of `layer`'s block once its page has the common size."""
    block = shaper.alignment.block_tokens
    if layer.kind is Kind.RECURRENT:
        return block
    own = layer.page_bytes(block)
    if page % own:
        raise EngineRefusedError(
            place="groups",
            found=f"pages of {own} and {page} bytes",
            expected="one a multiple of the other",
            fix="the engine cannot make them one size; name another block size or dtype",
        )
    return block * (page // own)


def _unshared(kinds: set[Kind]) -> EngineRefusedError:
    return EngineRefusedError(
        place="groups",
        found=" and ".join(sorted(kind.value for kind in kinds)) + " states in one model",
        expected="a mix whose layout is known",
        fix="leave the drafter out, or give its own block where a fork lays it into the latent's slots",
    )
