"""A tensor as a picture: two of its dimensions at chosen indices of the others, no finer than a screen can show.

``view`` asks for ``{"rows", "columns", "index", "window", "most", "cell"}``, each of which may be missing: the dimensions
that are shown, an index for each dimension, ``[first row, first column, end row, end column]``, the most rows and
columns of cells, and whether a cell of several elements is their ``mean`` or the one of the ``largest`` magnitude.

The answer: those (without ``most``) as they were taken; ``shape``, ``dtype``; ``size`` (rows and columns of cells);
``cells`` in row-major order (null if no element is finite); ``nan``, ``posinf``, ``neginf`` (the numbers of cells that
have such elements); ``statistics`` and ``histogram`` (``{"from", "to", "counts"}``) of the whole slice.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.values.run.statistics import described, plain

MOST = 192
"""Rows and columns of cells."""
BINS = 48
_AT_ONCE = 4 * 1024 * 1024  # elements


class NoPicture(ValueError):
    """The value, or what is asked of it, has no picture; the message says why."""


def picture(value: Any, view: Mapping[str, Any]) -> dict[str, Any]:
    """The picture of a tensor of any number of dimensions.  Raises NoPicture."""
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        raise NoPicture(f"{type(value).__name__} is not a tensor")
    if not value.numel():
        raise NoPicture(f"a tensor of the shape {list(value.shape)} has no elements")
    shape, dtype = list(value.shape), str(value.dtype).removeprefix("torch.")
    tensor = value.detach().reshape([1] * (2 - value.dim()) + shape) if value.dim() < 2 else value.detach()
    rows, columns = _dimensions(view, tensor.dim())
    index = _index(view.get("index"), tensor.shape, (rows, columns))
    chosen = tuple(slice(None) if number in (rows, columns) else index[number] for number in range(tensor.dim()))
    matrix = tensor[chosen] if rows < columns else tensor[chosen].T
    matrix = matrix.abs() if matrix.is_complex() else matrix
    window = _window(view.get("window"), matrix.shape)
    part = matrix[window[0] : window[2], window[1] : window[3]]
    most: Any = view.get("most")
    limits = [max(1, min(MOST, int(each))) for each in (most if _whole(most, 2) else ())] or [MOST, MOST]
    size = [min(limit, have) for limit, have in zip(limits, part.shape, strict=True)]
    cell = "largest" if view.get("cell") == "largest" else "mean"
    cells, marks = _cells(part, size, cell)
    facts = described(matrix)
    kept = ("count", "min", "max", "mean", "std", "nan", "posinf", "neginf", "zeros")
    return {
        "shape": shape, "dtype": dtype, "rows": rows, "columns": columns, "index": index, "window": window, "size": size,
        "extent": list(matrix.shape), "cell": cell, "cells": cells, **marks,
        "statistics": {name: facts[name] for name in kept}, "histogram": _histogram(matrix),
    }  # fmt: skip


def _dimensions(view: Mapping[str, Any], count: int) -> tuple[int, int]:
    rows, columns = view.get("rows", count - 2), view.get("columns", count - 1)
    if not _whole([rows, columns], 2) or not (0 <= rows < count and 0 <= columns < count) or rows == columns:
        raise NoPicture(f"rows and columns must be two dimensions of {count}")
    return rows, columns


def _index(given: Any, shape: Sequence[int], shown: tuple[int, int]) -> list[int]:
    wanted = given if _whole(given, len(shape)) else [0] * len(shape)
    return [0 if at in shown else max(0, min(each, shape[at] - 1)) for at, each in enumerate(wanted)]


def _window(given: Any, size: Sequence[int]) -> list[int]:
    top, left, bottom, right = given if _whole(given, 4) else (0, 0, *size)
    top, left = max(0, min(top, size[0] - 1)), max(0, min(left, size[1] - 1))
    return [top, left, max(top + 1, min(bottom, size[0])), max(left + 1, min(right, size[1]))]


def _whole(given: Any, count: int) -> bool:
    is_list = isinstance(given, list | tuple) and len(given) == count
    return is_list and all(isinstance(each, int) and not isinstance(each, bool) for each in given)


def _cells(part: Any, size: Sequence[int], cell: str) -> tuple[list[Any], dict[str, list[int]]]:
    """The cells, and which of them hold what is not finite; some rows at a time, so that no copy is large."""
    torch: Any = sys.modules["torch"]
    height, width = part.shape
    column_of = torch.arange(width) * size[1] // width
    shape = size[0] * size[1]
    total, count, low, high = (torch.zeros(shape, dtype=torch.float64) for _ in range(4))
    marks = {name: torch.zeros(shape, dtype=torch.float64) for name in ("nan", "posinf", "neginf")}
    step = max(1, _AT_ONCE // width)
    for start in range(0, height, step):
        values = part[start : start + step].to("cpu", torch.float64)
        row_of = torch.arange(start, start + len(values)) * size[0] // height
        at = (row_of[:, None] * size[1] + column_of[None, :]).reshape(-1)
        flat = values.reshape(-1)
        finite = torch.isfinite(flat)
        number = torch.where(finite, flat, 0.0)
        total.index_add_(0, at, number)
        count.index_add_(0, at, finite.double())
        low.scatter_reduce_(0, at, number, "amin")
        high.scatter_reduce_(0, at, number, "amax")
        for name, bad in (("nan", flat.isnan()), ("posinf", flat == math.inf), ("neginf", flat == -math.inf)):
            marks[name].index_add_(0, at, bad.double())
    shown = torch.where(high >= -low, high, low) if cell == "largest" else total / count
    known = (count > 0).tolist()
    cells = [_short(each) if is_known else None for each, is_known in zip(shown.tolist(), known, strict=True)]
    return cells, {name: each.nonzero().reshape(-1).tolist() for name, each in marks.items()}


def _histogram(matrix: Any) -> dict[str, Any] | None:
    torch: Any = sys.modules["torch"]
    flat = matrix.reshape(-1).to("cpu", torch.float64)
    flat = flat[flat.isfinite()]
    if not flat.numel():
        return None
    low, high = (float(each) for each in flat.aminmax())
    if low == high or not math.isfinite(high - low):
        return {"from": plain(low), "to": plain(high), "counts": [flat.numel()]}
    counts = torch.histc(flat, BINS, low, high)
    return {"from": plain(low), "to": plain(high), "counts": [int(each) for each in counts.tolist()]}


def _short(number: float) -> Any:
    return plain(float(f"{number:.7g}"))
