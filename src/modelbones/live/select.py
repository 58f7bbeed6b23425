"""`DsaSelectGeometry`: the sizes of one selection over what a cache holds.

Source: Metrale/metrale-inference-alpha model-arch glm5next_dsa/select.rs::DsaSelectGeometry.plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.errors import SelectionError
from modelbones.live.counts import ensure_count
from modelbones.live.dsa_config import Glm5NextDsaConfig
from modelbones.units import ceil_div

SELECT_TILE = 2_048
"""Pools the selector's top-k sorts at once."""

TILE_PLACE_BYTES = 16
"""Shared memory one place of the tile takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DsaSelectGeometry:
    """One selection: `q_rows` queries over `seq` cached tokens.

    Attributes:
        seq: Tokens in the cache.
        q_rows: Queries of the step.
        index_head_dim: Width of an indexer key.
        index_heads: Heads of the indexer.
        index_kpool: Tokens a pool.
        n_pools: Complete pools, the only ones a query may select.
        n_pools_full: Pools written, the trailing partial one included.
        select_k: Pools selected, at most the tile.
        out_width: Token places a query's selection has, the tail's included.
        topk_np2: Places of the sort, a power of two.
        topk_smem: Bytes of shared memory the sort takes.
    """

    seq: int
    q_rows: int
    index_head_dim: int
    index_heads: int
    index_kpool: int
    n_pools: int
    n_pools_full: int
    select_k: int
    out_width: int
    topk_np2: int
    topk_smem: int

    @classmethod
    def plan(cls, cfg: Glm5NextDsaConfig, seq: int, q_rows: int) -> DsaSelectGeometry:
        """The geometry for `q_rows` queries over `seq` tokens; `cfg.max_context` is not consulted.

        With fewer tokens than a pool nothing is selected: every visible token is the tail.

        Raises:
            ConfigError: `cfg` does not validate.
            UsageError: There is no query or no token.
            SelectionError: More pools to select than the tile has places.
        """
        cfg.validate()
        ensure_count("q_rows", q_rows, least=1)
        ensure_count("seq", seq, least=1)
        n_pools = seq // cfg.index_kpool
        select_k = min(cfg.index_topk // cfg.index_kpool, n_pools)
        if select_k > SELECT_TILE:
            raise SelectionError(select_k=select_k, tile=SELECT_TILE, seq=seq)
        topk_np2 = min(SELECT_TILE, _power_of_two_from(max(2, n_pools)))
        return cls(
            seq=seq,
            q_rows=q_rows,
            index_head_dim=cfg.index_head_dim,
            index_heads=cfg.index_heads,
            index_kpool=cfg.index_kpool,
            n_pools=n_pools,
            n_pools_full=ceil_div(seq, cfg.index_kpool),
            select_k=select_k,
            out_width=cfg.index_topk + (cfg.index_kpool - 1 if cfg.always_select_tail else 0),
            topk_np2=topk_np2,
            topk_smem=TILE_PLACE_BYTES * topk_np2,
        )

    @property
    def tail_start(self) -> int:
        """First row of no complete pool; after a rewind, pools are to be built again from here."""
        return self.n_pools * self.index_kpool

    @property
    def tail_rows(self) -> int:
        """Rows of the pool that is not complete."""
        return self.seq - self.tail_start


def _power_of_two_from(least: int) -> int:
    """The smallest power of two that is at least `least`, which is positive."""
    return 1 << (least - 1).bit_length()
