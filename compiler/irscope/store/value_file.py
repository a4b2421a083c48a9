"""The file that holds the elements of tensors, and reading it without torch.

Elements lie contiguous in row-major order and little-endian, each tensor at a multiple of 64 bytes; the data of the stage
``values`` says where each tensor is.  Nothing in the file is executed or unpickled.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import struct
from collections.abc import Sequence
from typing import Any

from irscope.store.file import make_private_folder, open_private
from irscope.vocabulary.records import dataclass

SUFFIX = ".values"
"""The folder of values of a store is its path with this suffix; in it is one folder for each run."""

_ALIGNMENT = 64
# dtype → bytes of an element and the format of `struct`; bfloat16 and the 8-bit floats are unpacked by hand.
_FORMATS = {
    "float64": (8, "d"), "float32": (4, "f"), "float16": (2, "e"), "bfloat16": (2, "H"), "int64": (8, "q"),
    "int32": (4, "i"), "int16": (2, "h"), "int8": (1, "b"), "uint8": (1, "B"), "uint16": (2, "H"), "uint32": (4, "I"),
    "uint64": (8, "Q"), "bool": (1, "?"), "complex64": (8, "ff"), "complex128": (16, "dd"),
    "float8_e4m3fn": (1, "B"), "float8_e5m2": (1, "B"),
}  # fmt: skip


class DamagedValues(ValueError):
    """The file and what is said of it do not fit together."""


def folder_of(store: str, run: str) -> str:
    """Where a run keeps its values; it need not exist.  Raises DamagedValues for a run whose id is not a plain name."""
    if not re.fullmatch(r"\w[\w-]*", run):
        raise DamagedValues(f"Invalid run ID: {run!r}")
    return os.path.join(store + SUFFIX, run)


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies.

    Raises:
        DamagedValues: by `of` for a description that no tensor can have.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int

    @classmethod
    def of(cls, value: Any) -> StoredTensor | None:
        """From a value of a stage's data; None if its elements were not kept."""
        try:
            if value["kind"] != "tensor" or value["offset"] is None:
                return None
            dtype, shape = str(value["dtype"]), tuple(int(size) for size in value["shape"])
            offset, size = int(value["offset"]), int(value["bytes"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedValues(f"a value is not of its form: {error!r}") from None
        known = _FORMATS.get(dtype)
        if known is None or offset < 0 or min(shape, default=1) < 0 or math.prod(shape) * known[0] != size:
            raise DamagedValues(f"a value of {dtype} with the shape {list(shape)} does not take {size} bytes")
        return cls(dtype, shape, offset, size)


class ValueReader:
    """Reads elements of one file.  A context manager.  Raises OSError if there is none."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  it is closed by `close`
        self._size = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> ValueReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def elements(self, tensor: StoredTensor, start: int, count: int) -> list[Any]:
        """``count`` elements in row-major order from index ``start``, as Python numbers; fewer at the end.

        Raises DamagedValues if the file is shorter than what is said of it.
        """
        size, form = _FORMATS[tensor.dtype]
        start = max(start, 0)
        count = max(0, min(count, math.prod(tensor.shape) - start))
        if tensor.offset + tensor.bytes > self._size:
            raise DamagedValues(f"the file of values ends before the tensor of {tensor.bytes} bytes")
        self._file.seek(tensor.offset + start * size)
        data = self._file.read(count * size)
        return _unpacked(data, tensor.dtype, form)

    def at(self, tensor: StoredTensor, index: Sequence[int]) -> list[Any]:
        """The elements below some leading indices: ``at(t, (2,))`` are those of row 2."""
        inner = math.prod(tensor.shape[len(index) :])
        start = 0
        for position, size in zip(index, tensor.shape, strict=False):
            start = start * size + position
        return self.elements(tensor, start * inner, inner)


def _unpacked(data: bytes, dtype: str, form: str) -> list[Any]:
    values: list[Any] = [each[0] if len(each) == 1 else complex(*each) for each in struct.iter_unpack("<" + form, data)]
    if dtype == "bfloat16":
        return [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]
    if dtype.startswith("float8"):
        return [_float8(value, 3 if "e4m3" in dtype else 2, "fn" in dtype) for value in values]
    return values


def _float8(byte: int, mantissa: int, only_nan: bool) -> float:
    """An 8-bit float by its number of mantissa bits; ``only_nan``: all ones is NaN and there is no infinity."""
    sign = -1.0 if byte & 0x80 else 1.0
    top = (1 << (7 - mantissa)) - 1
    exponent, fraction = (byte & 0x7F) >> mantissa, byte & ((1 << mantissa) - 1)
    bias = top >> 1
    if exponent == top and (not only_nan or fraction == (1 << mantissa) - 1):
        return math.nan if fraction or only_nan else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - mantissa)
    return sign * math.ldexp(fraction + (1 << mantissa), exponent - bias - mantissa)


class ValueWriter:
    """Appends tensors, as bytes, until a budget is used up; those with the same bytes lie there once.

    Args:
        path: Made, with its folder, when the first tensor comes.
        budget: Bytes of all tensors together.
    """

    def __init__(self, path: str, budget: int) -> None:
        self._path, self._left = path, budget
        self._position = 0
        self._known: dict[bytes, int] = {}
        self._file: Any = None
        self.full = False

    @property
    def name(self) -> str:
        """The file's name; empty if nothing was written."""
        return os.path.basename(self._path) if self._file is not None else ""

    def write(self, data: Any, size: int) -> int | None:
        """Where the bytes (anything with the buffer protocol) went; None if the budget does not reach."""
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if (known := self._known.get(digest)) is not None:
            return known
        if size > self._left:
            self.full = True
            return None
        if self._file is None:
            make_private_folder(os.path.dirname(self._path))
            self._file = open(self._path, "wb", opener=open_private)  # noqa: SIM115
        offset = self._position
        self._file.write(data)
        padding = -size % _ALIGNMENT
        self._file.write(b"\0" * padding)
        self._known[digest] = offset
        self._position += size + padding
        self._left -= size
        return offset

    @property
    def written(self) -> int:
        """Bytes that the file has."""
        return self._position

    def close(self) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            self._file.close()
