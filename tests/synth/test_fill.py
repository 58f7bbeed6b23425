"""What stands in synthetic tensors: holes, zeros, or finite numbers that can be made again."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from modelbones.dtypes import DType
from modelbones.synth.fill import Fill, writer
from modelbones.synth.layout import Tensor
from modelbones.synth.write import write_checkpoint

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

NUMPY = {
    DType.F32: np.float32,
    DType.F16: np.float16,
    DType.BF16: ml_dtypes.bfloat16,
    DType.F8_E4M3: ml_dtypes.float8_e4m3fn,
}


def filled(tensor: Tensor, *, seed: int = 0, fill: Fill = Fill.RANDOM) -> bytes:
    file = io.BytesIO()
    writer(fill, seed)(file, tensor)
    return file.getvalue()


@pytest.mark.parametrize("dtype", NUMPY)
def test_random_numbers_are_finite_differ_and_can_be_made_again(dtype: DType) -> None:
    tensor = Tensor("a.weight", dtype, (300, 130))
    raw = filled(tensor)
    assert len(raw) == tensor.nbytes
    numbers = np.frombuffer(raw, NUMPY[dtype]).astype(np.float64)
    assert np.isfinite(numbers).all()
    assert np.unique(numbers).size > 50
    assert filled(tensor) == raw
    assert filled(tensor, seed=1) != raw
    assert filled(Tensor("b.weight", dtype, (300, 130))) != raw


@pytest.mark.parametrize("dtype", list(DType))
def test_every_type_fills_its_whole_size(dtype: DType) -> None:
    tensor = Tensor("x", dtype, (64, 8))
    assert len(filled(tensor)) == tensor.nbytes
    assert filled(tensor, fill=Fill.ZEROS) == bytes(tensor.nbytes)


@pytest.mark.parametrize("dtype", [DType.F64, DType.F8_E5M2, DType.F8_E8M0, DType.C64])
def test_other_float_types_are_finite_too(dtype: DType) -> None:
    raw = np.frombuffer(filled(Tensor("x", dtype, (4096,))), np.uint8)
    if dtype in (DType.F64, DType.C64):
        kind = np.float64 if dtype is DType.F64 else np.complex64
        assert np.isfinite(raw.view(kind)).all()
    elif dtype is DType.F8_E5M2:
        assert np.isfinite(raw.view(ml_dtypes.float8_e5m2).astype(np.float32)).all()
    else:
        assert (raw != 0xFF).all(), "0xff is the only NaN of a power of two"


def test_a_tensor_longer_than_a_chunk_is_filled_to_its_end() -> None:
    tensor = Tensor("x", DType.BF16, (5 * 1024 * 1024,))
    raw = filled(tensor)
    assert len(raw) == tensor.nbytes
    assert raw[: 4 * 1024 * 1024] != raw[4 * 1024 * 1024 : 8 * 1024 * 1024]


def test_a_tensor_has_the_same_bytes_whatever_the_files_and_the_order(tmp_path: Path) -> None:
    listed = [Tensor(f"t{number}", dtype, (number, 16)) for number, dtype in enumerate(NUMPY, start=1)]
    found = []
    for number, (order, files) in enumerate(((listed, 1), (listed, 3), (listed[::-1], 4))):
        folder = tmp_path / str(number)
        write_checkpoint(folder, order, {}, fill=Fill.RANDOM, seed=5, num_shards=files)
        tensors = {}
        for path in folder.glob("*.safetensors"):
            raw = path.read_bytes()
            start = 8 + int.from_bytes(raw[:8], "little")
            for name, (begin, end) in spans(raw[8:start]).items():
                tensors[name] = raw[start + begin : start + end]
        found.append(tensors)
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 4


def spans(header: bytes) -> dict[str, tuple[int, int]]:
    import json

    entries = json.loads(header)
    return {name: tuple(entry["data_offsets"]) for name, entry in entries.items() if name != "__metadata__"}
