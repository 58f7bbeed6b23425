"""Element types: their width in bits and their name in each format.

Source: safetensors 0.8 tensor.rs::Dtype for the format names and widths; Hugging
Face `config.json` writes PyTorch's names (`"dtype": "bfloat16"`).
"""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """One element type. `value` is its name in a safetensors header."""

    BOOL = "BOOL"
    F4 = "F4"
    F6_E2M3 = "F6_E2M3"
    F6_E3M2 = "F6_E3M2"
    U8 = "U8"
    I8 = "I8"
    F8_E5M2 = "F8_E5M2"
    F8_E4M3 = "F8_E4M3"
    F8_E8M0 = "F8_E8M0"
    F8_E4M3FNUZ = "F8_E4M3FNUZ"
    F8_E5M2FNUZ = "F8_E5M2FNUZ"
    I16 = "I16"
    U16 = "U16"
    F16 = "F16"
    BF16 = "BF16"
    I32 = "I32"
    U32 = "U32"
    F32 = "F32"
    C64 = "C64"
    F64 = "F64"
    I64 = "I64"
    U64 = "U64"

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        return BITS[self]


_WIDTHS = {
    4: (DType.F4,),
    6: (DType.F6_E2M3, DType.F6_E3M2),
    8: (
        DType.BOOL,
        DType.U8,
        DType.I8,
        DType.F8_E5M2,
        DType.F8_E4M3,
        DType.F8_E8M0,
        DType.F8_E4M3FNUZ,
        DType.F8_E5M2FNUZ,
    ),
    16: (DType.I16, DType.U16, DType.F16, DType.BF16),
    32: (DType.I32, DType.U32, DType.F32),
    64: (DType.C64, DType.F64, DType.I64, DType.U64),
}
BITS: dict[DType, int] = {dtype: bits for bits, dtypes in _WIDTHS.items() for dtype in dtypes}

BY_CONFIG_NAME: dict[str, DType] = {
    "bfloat16": DType.BF16,
    "float16": DType.F16,
    "float32": DType.F32,
}
"""The words `dtype` / `torch_dtype` may hold, with or without a `torch.` in front."""
