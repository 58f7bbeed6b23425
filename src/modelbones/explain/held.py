"""`Held`: what a request holds whatever its length, and what an idle cache really keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelbones.engines.vllm import CachePlan, Group, Kind, VllmSettings
from modelbones.explain.pool import Pool
from modelbones.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldGroup:
    """Groups of one kind and size, together.

    Attributes:
        kind: What binds their block count.
        groups: How many they are.
        block_tokens: Tokens of one of their blocks.
        blocks: Blocks a request of the longest context holds in them.
        idle_blocks: Block ids they keep for one idle step of the prefix cache.
    """

    kind: Kind
    groups: int
    block_tokens: int
    blocks: int
    idle_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Per rank; blocks of every group share one pool of ids, and an id costs a whole block.

    Attributes:
        context: Tokens of the longest request.
        bytes_per_block: Bytes of one block id.
        blocks_per_request: Blocks the longest request holds.
        fixed_blocks: Blocks any request holds before its first token, and keeps.
        groups: By kind, in the engine's order.
        num_blocks: Blocks of the pool; None where the log does not tell.
        max_sequences: Longest requests at once; None likewise.
        even_context: Tokens up to which the fixed blocks are at least as many as the growing
            ones; 0 when nothing is fixed or nothing grows.
        idle_step: Tokens between two points an idle prefix can be taken up at; 0 when
            nothing is kept.
        idle_blocks: Block ids one such step keeps, with every state that can be hit.
        idle_tokens: Tokens of idle prefixes the whole pool keeps so; None likewise.
    """

    context: int
    bytes_per_block: int
    blocks_per_request: int
    fixed_blocks: int
    groups: tuple[HeldGroup, ...]
    num_blocks: int | None
    max_sequences: int | None
    even_context: int
    idle_step: int
    idle_blocks: int
    idle_tokens: int | None

    @property
    def fixed_bytes(self) -> int:
        """Bytes of the blocks any request holds."""
        return self.fixed_blocks * self.bytes_per_block

    @property
    def request_bytes(self) -> int:
        """Bytes of the blocks the longest request holds."""
        return self.blocks_per_request * self.bytes_per_block

    @property
    def binds(self) -> HeldGroup:
        """The groups most blocks of the longest request are in."""
        return max(self.groups, key=lambda group: group.blocks)


def held_by(plan: CachePlan, settings: VllmSettings, pool: Pool | None) -> Held:
    """What requests of `plan` hold, in the pool the log shows."""
    step = _step(plan) if settings.prefix_caching else 0
    idle = sum(_idle_blocks(group, step, settings) for group in plan.groups)
    sized = None if pool is None else replace(plan, num_blocks=pool.num_blocks)
    return Held(
        context=plan.max_model_len,
        bytes_per_block=plan.bytes_per_block,
        blocks_per_request=plan.blocks_per_request,
        fixed_blocks=plan.fixed_blocks,
        groups=_groups(plan, step, settings),
        num_blocks=None if sized is None else sized.num_blocks,
        max_sequences=None if sized is None else sized.max_sequences(plan.max_model_len),
        even_context=plan.fixed_blocks * _step(plan),
        idle_step=step,
        idle_blocks=idle,
        idle_tokens=None if sized is None else sized.usable_blocks // idle * step if idle else 0,
    )


def _step(plan: CachePlan) -> int:
    """Tokens of the widest block of a group that grows; 0 when none does."""
    return max((group.block_tokens * group.dcp for group in plan.groups if _grows(group)), default=0)


def _grows(group: Group) -> bool:
    return group.fixed_blocks is None and group.held_tokens is None


def _idle_blocks(group: Group, step: int, settings: VllmSettings) -> int:
    """Ids of one idle step: its tokens, one state at its end, the window before its end; no tail."""
    if not step or group.kind is Kind.TAIL:
        return 0
    if group.fixed_blocks is not None:
        return 1
    blocks = ceil_div(step, group.block_tokens * group.dcp)
    if group.held_tokens is None:
        return blocks
    window = group.held_tokens - settings.rules.in_flight_batches * settings.max_batched_tokens
    return min(blocks, ceil_div(window, group.block_tokens) + 1)


def _groups(plan: CachePlan, step: int, settings: VllmSettings) -> tuple[HeldGroup, ...]:
    merged: dict[tuple[Kind, int], HeldGroup] = {}
    for group in plan.groups:
        key = (group.kind, group.block_tokens)
        before = merged.get(key)
        merged[key] = HeldGroup(
            kind=group.kind,
            groups=1 + (before.groups if before else 0),
            block_tokens=group.block_tokens,
            blocks=group.blocks(plan.max_model_len) + (before.blocks if before else 0),
            idle_blocks=_idle_blocks(group, step, settings) + (before.idle_blocks if before else 0),
        )
    return tuple(merged.values())
