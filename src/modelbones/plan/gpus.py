"""GPUs: how much memory the driver reports, and the compute capability backends go by.

`memory` is nvidia-smi's total in MiB. Sources: modal-labs/modal-client pull 2797 (H100, A100,
A10, L40S, L4, T4); noonghunna/club-3090 issues 1229 and 390 (RTX 5090, RTX 3090);
RLinf/RLinf issue 255 (RTX 4090); public nvidia-smi listings of H200 machines; pytorch/ao pull
4002 (B200, whose driver reports 178.35 GiB to programs). Capability: NVIDIA's CUDA GPU list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from modelbones.errors import UsageError
from modelbones.units import GIB, MIB, parse_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: As people write it.
        memory: Bytes of one card.
        capability: Major compute capability; None when only a size was given.
    """

    name: str
    memory: int
    capability: int | None


def _card(name: str, mib: int, capability: int) -> Gpu:
    return Gpu(name=name, memory=mib * MIB, capability=capability)


GPUS: dict[str, Gpu] = {
    gpu.name.lower(): gpu
    for gpu in (
        _card("B200", 17835 * GIB // 100 // MIB, 10),
        _card("H200", 143771, 9),
        _card("H100", 81559, 9),
        _card("A100", 81920, 8),
        _card("A100-40GB", 40960, 8),
        _card("L40S", 46068, 8),
        _card("RTX5090", 32607, 12),
        _card("RTX4090", 24564, 8),
        _card("RTX3090", 24576, 8),
        _card("L4", 23034, 8),
        _card("A10", 23028, 8),
        _card("T4", 15360, 7),
    )
}
_COUNTED = re.compile(r"(?:(\d{1,5})x)?(.+)")


def parse_gpus(text: str) -> tuple[int, Gpu]:
    """(count, GPU) of "H200", "8xH100" or "2x96GiB".

    Raises:
        UsageError: No such GPU, and no size either.
    """
    match = _COUNTED.fullmatch(text.strip())
    count, word = (int(match[1] or 1), match[2]) if match else (0, "")
    known = GPUS.get(word.lower().replace(" ", "").replace("_", ""))
    if known is None and word[:1].isdigit():
        known = Gpu(name=word, memory=parse_bytes(word), capability=None)
    if known is None or not count:
        names = ", ".join(gpu.name for gpu in GPUS.values())
        raise UsageError(f'--gpu: found "{text}"; expected one of {names}, or a size such as 96GiB; write 8xH100 for 8')
    return count, known
