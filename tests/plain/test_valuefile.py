"""Reading the numbers that a value run has kept, without torch."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
from irscope.protocol import Lane, RunRequest, ValuesRequest, from_json, to_json
from irscope.store.store import Store
from irscope.store.value_file import DamagedValues, StoredTensor, ValueReader, ValueWriter, folder_of
from irscope.values.run.text import picture_lines, share


def stored(path: Path, dtype: str, shape: list[int], data: bytes) -> StoredTensor:
    writer = ValueWriter(str(path), 1 << 20)
    writer.write(b"before", 6)
    offset = writer.write(data, len(data))
    writer.close()
    tensor = StoredTensor.of({"kind": "tensor", "dtype": dtype, "shape": shape, "offset": offset, "bytes": len(data)})
    assert tensor is not None
    return tensor


@pytest.mark.parametrize(
    ("dtype", "data", "expected"),
    [
        ("float32", struct.pack("<3f", 1.5, -2.0, 0.25), [1.5, -2.0, 0.25]),
        ("float16", struct.pack("<3e", 1.5, -2.0, 65504.0), [1.5, -2.0, 65504.0]),
        ("bfloat16", bytes.fromhex("803f 00c0 807f"), [1.0, -2.0, math.inf]),
        ("int64", struct.pack("<3q", 1, -2, 2**62), [1, -2, 2**62]),
        ("bool", b"\1\0\1", [True, False, True]),
        ("complex64", struct.pack("<6f", 1, 2, 3, 4, 5, 6), [1 + 2j, 3 + 4j, 5 + 6j]),
        ("float8_e4m3fn", bytes([0x38, 0xB8, 0x7E]), [1.0, -1.0, 448.0]),
        ("float8_e5m2", bytes([0x3C, 0x01, 0x7C]), [1.0, 2.0**-16, math.inf]),
    ],
)
def test_elements_of_each_dtype(tmp_path: Path, dtype: str, data: bytes, expected: list[object]) -> None:
    tensor = stored(tmp_path / "v.bin", dtype, [3], data)
    assert tensor.offset % 64 == 0
    with ValueReader(str(tmp_path / "v.bin")) as reader:
        assert reader.elements(tensor, 0, 3) == expected
        assert reader.elements(tensor, 1, 9) == expected[1:]


def test_rows_are_found_by_their_indices(tmp_path: Path) -> None:
    tensor = stored(tmp_path / "v.bin", "int32", [2, 3, 2], struct.pack("<12i", *range(12)))
    with ValueReader(str(tmp_path / "v.bin")) as reader:
        assert reader.at(tensor, (1,)) == [6, 7, 8, 9, 10, 11]
        assert reader.at(tensor, (1, 2)) == [10, 11]
        assert reader.at(tensor, (0, 1, 1)) == [3]


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "tensor", "dtype": "float32", "shape": [4], "offset": 0, "bytes": 8},
        {"kind": "tensor", "dtype": "float32", "shape": [-2, -2], "offset": 0, "bytes": 16},
        {"kind": "tensor", "dtype": "float32", "shape": [2], "offset": -8, "bytes": 8},
        {"kind": "tensor", "dtype": "pickle", "shape": [2], "offset": 0, "bytes": 8},
        {"kind": "tensor", "dtype": "float32", "shape": "ab", "offset": 0, "bytes": 8},
        {"kind": "tensor"},
    ],
)
def test_what_does_not_fit_together_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(DamagedValues):
        StoredTensor.of(value)


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    tensor = stored(tmp_path / "v.bin", "float32", [2], struct.pack("<2f", 1, 2))
    (tmp_path / "v.bin").write_bytes(b"short")
    with ValueReader(str(tmp_path / "v.bin")) as reader, pytest.raises(DamagedValues):
        reader.elements(tensor, 0, 2)


def test_the_budget_of_elements_holds(tmp_path: Path) -> None:
    writer = ValueWriter(str(tmp_path / "v.bin"), 100)
    assert writer.write(b"x" * 60, 60) == 0
    assert writer.write(b"y" * 60, 60) is None
    assert writer.write(b"x" * 60, 60) == 0  # once there, for all that are the same
    assert writer.full
    writer.close()


def test_pictures_have_a_shade_for_each_cell() -> None:
    assert picture_lines([[0.0, 1.0], [0.5, "nan"]]) == [" █", "▒?"]
    assert picture_lines(None) == []
    assert [share(ratio) for ratio in (0.5, 12.0, "inf")] == ["50 %", "×12", "×inf"]


def test_a_run_that_goes_takes_its_values_along(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/s.py", (), Lane.DEEP, "")
        folder = Path(folder_of(store.path, run))
        folder.mkdir(parents=True)
        (folder / "0000.bin").write_bytes(b"x")
        store.forget_findings(run)
    assert not folder.exists()
    with pytest.raises(DamagedValues):
        folder_of("/runs.db", "../elsewhere")


def test_the_request_crosses_the_pipe() -> None:
    request = RunRequest("r", "/s.py", (), Lane.DEEP, "/runs.db", values=ValuesRequest("0/0", call=3, divergence=True))
    assert from_json(RunRequest, to_json(request)) == request
