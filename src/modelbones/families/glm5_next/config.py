"""Read a `glm5_next` config: its keys, their spellings, and what is refused.

Source of the spellings and of what engines refuse: transformers 5.23
configuration_glm5_next.py; vllm-project/vllm vllm/transformers_utils/configs/glm5_next.py;
sgl-project/sglang python/sglang/srt/configs/glm5_next.py; Metrale/metrale-inference-alpha
crates/config/src/parsers/glm5_next.rs.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelbones.config import Absent, Section, flag, integer, number
from modelbones.families.glm5_next.layers import SOURCE, mixers, runs_indexer
from modelbones.families.glm5_next.vision import read_vision
from modelbones.families.model_config import ModelConfig, declared_by, stored_dtype, tied
from modelbones.families.reading.mlps import mlps
from modelbones.families.reading.rules import must_be_true, must_equal
from modelbones.parts.glm_vision import GlmVisionSizes
from modelbones.skeleton import Mixer, Mlp

_MAX_LAYERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm5NextConfig(ModelConfig):
    """A `glm5_next` config, one field a fact, in Hugging Face's words.

    The KDA geometry is under transformers' flat names. `mixers`, `mlps` and
    `runs_indexer` hold one entry for each text layer.
    """

    hidden_size: int
    vocab_size: int
    intermediate_size: int
    mixers: tuple[Mixer, ...]
    mlps: tuple[Mlp, ...]
    runs_indexer: tuple[bool, ...]
    linear_num_heads: int
    linear_head_dim: int
    linear_conv_kernel_dim: int
    num_attention_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    attention_bias: bool
    index_n_heads: int
    index_head_dim: int
    index_topk: int
    index_kpool: int
    index_kpool_always_select_tail: bool | None
    n_routed_experts: int
    n_shared_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    hc_mult: int
    num_nextn_predict_layers: int
    vision: GlmVisionSizes | None

    @property
    def num_hidden_layers(self) -> int:
        """Layers of the text stack."""
        return len(self.mixers)


def read(top: Section) -> Glm5NextConfig:
    """The typed config of `top`; everything wrong with it is raised at once."""
    ledger = top.ledger
    text = top.section("text_config")
    if text is None:
        ledger.raise_faults()
        text = top
    elif text.values.get("model_type") not in (None, "glm5_next", "glm5_next_text"):
        found = text.values.get("model_type")
        ledger.fault(text.path_of("model_type"), found=found, expected='"glm5_next_text"')
    linear = text.section("linear_attn_config") or Section({}, text.path_of("linear_attn_config"), ledger)
    num_layers = integer(text.at("num_hidden_layers"), maximum=_MAX_LAYERS)
    layers_are_counted = ledger.is_sound(text.at("num_hidden_layers"))
    layer_mixers = mixers(text, linear, num_layers) if layers_are_counted else ()
    sizes = {
        **_attention(text),
        **_kda(text, linear),
        **_indexer(text),
        **_experts(text),
        **_around(text),
    }
    sections = (top,) if text is top else (top, text)
    dtype = stored_dtype(*reversed(sections))
    is_tied = tied(*reversed(sections), source=SOURCE)
    layer_mlps = mlps(text, num_layers) if layers_are_counted else ()
    # Where the mixers are at fault, the words are still read for faults of their own.
    indexers = runs_indexer(text, layer_mixers or (Mixer.KDA,) * num_layers) if layers_are_counted else ()
    vision = read_vision(top)
    tail = _tail(text)
    attention_bias = flag(
        text.at("attention_bias"), absent=Absent(value=False, meaning="false: no projection has one", source=SOURCE)
    )
    longest = integer(text.at("max_position_embeddings")) if text.has("max_position_embeddings") else None
    declared = declared_by(top, *sections[1:])
    ledger.raise_faults()
    return Glm5NextConfig(
        declared=declared,
        dtype=dtype,
        tie_word_embeddings=is_tied,
        mixers=layer_mixers,
        mlps=layer_mlps,
        runs_indexer=indexers,
        index_kpool_always_select_tail=tail,
        attention_bias=attention_bias,
        max_position_embeddings=longest,
        vision=vision,
        **sizes,
    )


def _attention(text: Section) -> dict[str, int]:
    names = ("num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")
    sizes = {name: integer(text.at(name)) for name in names}
    rope = text.at("qk_rope_head_dim")
    sizes["qk_rope_head_dim"] = integer(rope, minimum=0)
    ledger = text.ledger
    if ledger.is_sound(rope) and sizes["qk_rope_head_dim"]:
        ledger.fault(rope.path, found=sizes["qk_rope_head_dim"], expected="0: this attention has no rotary part")
    if ledger.is_sound(text.at("num_attention_heads")):
        must_equal(text.at("num_key_value_heads"), sizes["num_attention_heads"], "num_attention_heads")
    if ledger.is_sound(text.at("qk_nope_head_dim"), rope):
        must_equal(text.at("qk_head_dim"), sizes["qk_nope_head_dim"], "qk_nope_head_dim + qk_rope_head_dim")
    for key in ("mla_use_nope", "mla_nope"):
        must_be_true(text.at(key), "this attention has no rotary part")
    return sizes


def _kda(text: Section, linear: Section) -> dict[str, int]:
    bounds = linear.at("gate_lower_bound"), text.at("linear_lower_bound"), text.at("gate_lower_bound")
    if any(spot.section.has(spot.key) for spot in bounds):
        number(*bounds)
    return {
        "linear_num_heads": integer(linear.at("num_heads"), text.at("linear_num_heads")),
        "linear_head_dim": integer(linear.at("head_dim"), text.at("linear_head_dim")),
        "linear_conv_kernel_dim": integer(linear.at("short_conv_kernel_size"), text.at("linear_conv_kernel_dim")),
    }


def _indexer(text: Section) -> dict[str, int]:
    topk, kpool = text.at("index_topk"), text.at("index_kpool")
    sizes = {
        "index_n_heads": integer(text.at("index_n_heads")),
        "index_head_dim": integer(text.at("index_head_dim")),
        "index_topk": integer(topk),
        # Engines fill an absent pool with 1, 4 or 16, so absence has no meaning here.
        "index_kpool": integer(kpool),
    }
    ledger = text.ledger
    if ledger.is_sound(topk, kpool) and sizes["index_topk"] % sizes["index_kpool"]:
        expected = f"a multiple of index_kpool, {sizes['index_kpool']}"
        ledger.fault(topk.path, found=sizes["index_topk"], expected=expected)
    must_be_true(text.at("index_kpool_compress"), "the indexer's keys are pooled")
    return sizes


def _tail(text: Section) -> bool | None:
    spot = text.at("index_kpool_always_select_tail")
    return flag(spot) if text.has(spot.key) else None


def _experts(text: Section) -> dict[str, int]:
    routed = text.at("n_routed_experts"), text.at("num_local_experts")
    chosen = text.at("num_experts_per_tok"), text.at("num_experts_per_token")
    sizes = {
        "n_routed_experts": integer(*routed),
        "num_experts_per_tok": integer(*chosen),
        "n_shared_experts": integer(text.at("n_shared_experts"), minimum=0),
        "moe_intermediate_size": integer(text.at("moe_intermediate_size")),
    }
    is_sound = text.ledger.is_sound(routed[0], chosen[0])
    if is_sound and sizes["num_experts_per_tok"] > sizes["n_routed_experts"]:
        expected = f"at most n_routed_experts, {sizes['n_routed_experts']}"
        text.ledger.fault(chosen[0].path, found=sizes["num_experts_per_tok"], expected=expected)
    return sizes


def _around(text: Section) -> dict[str, int]:
    must_be_true(text.at("mhc"), "hyper-connections are no option of this architecture")
    nextn = Absent(value=0, meaning="0: no MTP layer is declared", source="what is stored decides in `check`")
    mtp = text.at("num_nextn_predict_layers"), text.at("nextn_predict_layers")
    sizes = {
        "hidden_size": integer(text.at("hidden_size")),
        "vocab_size": integer(text.at("vocab_size")),
        "intermediate_size": integer(text.at("intermediate_size")),
        "hc_mult": integer(text.at("hc_mult"), text.at("mhc_num_residual_streams")),
        "num_nextn_predict_layers": integer(*mtp, minimum=0, absent=nextn),
    }
    if sizes["num_nextn_predict_layers"] > 1:
        text.ledger.fault(mtp[0].path, found=sizes["num_nextn_predict_layers"], expected="0 or 1 MTP layers")
    return sizes
