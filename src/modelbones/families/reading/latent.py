"""The widths of latent attention and of its indexer, in the words most configs share."""

from __future__ import annotations

from modelbones.config import MISSING, Absent, Section, fact, flag, integer
from modelbones.families.reading.rules import must_equal
from modelbones.parts.indexer import IndexerSizes
from modelbones.parts.mla import MlaSizes

LOW_RANK = "a positive integer"
LOW_RANK_OR_NULL = "a positive integer, or null where one matrix makes the query"


def read_mla(text: Section, *, hidden_size: int, source: str, null_rank: bool) -> MlaSizes:
    """The widths of MLA; every one is required.

    `null_rank` says whether `q_lora_rank` may be null, which is a query without a low rank. An
    absent one is refused: libraries fill in 768, 1,536 or null.
    """
    is_null = null_rank and text.values.get("q_lora_rank", MISSING) is None
    names = ("num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    sizes = {name: integer(text.at(name)) for name in names}
    rank = None if is_null else _rank(text, LOW_RANK_OR_NULL if null_rank else LOW_RANK)
    if is_null:
        text.take("q_lora_rank")
    must_equal(text.at("num_key_value_heads"), sizes["num_attention_heads"], "num_attention_heads")
    together = sizes["qk_nope_head_dim"] + sizes["qk_rope_head_dim"]
    must_equal(text.at("qk_head_dim"), together, "qk_nope_head_dim + qk_rope_head_dim")
    no_bias = Absent(value=False, meaning="false: no projection has one", source=source)
    bias = flag(text.at("attention_bias"), absent=no_bias)
    return MlaSizes(hidden_size=hidden_size, q_lora_rank=rank, attention_bias=bias, **sizes)


def _rank(text: Section, expected: str) -> int:
    def parse(raw: object) -> int | None:
        return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 < raw < 2**63 else None

    return fact([text.at("q_lora_rank")], parse, expected=expected, blank=1, absent=None)


def read_indexer(text: Section, mla: MlaSizes) -> IndexerSizes:
    """The widths of an indexer without pooling, which reads the query's low rank."""
    integer(text.at("index_topk"))
    return IndexerSizes(
        hidden_size=mla.hidden_size,
        q_lora_rank=mla.q_lora_rank or 1,
        index_n_heads=integer(text.at("index_n_heads")),
        index_head_dim=integer(text.at("index_head_dim")),
    )
