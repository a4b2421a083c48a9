"""What is shown of a tensor: its shape, its statistics, a small picture; the layout is that of `irscope.values`."""

from __future__ import annotations

import math
import sys
from typing import Any

from irscope.store.value_file import ValueWriter

PICTURE = 64
"""Rows and columns of a picture at most."""
_ITEMS = 64  # of a list that is shown
_DEPTH = 4


def described(value: Any, writer: ValueWriter | None = None, depth: int = 0) -> dict[str, Any]:
    """A value as plain data; the elements of tensors go to the writer."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        try:
            return _tensor(torch, value, writer)
        except Exception as error:  # noqa: BLE001  sparse, nested and quantized tensors have no such operations
            return {"kind": "failed", "why": f"{type(error).__name__}: {first_line(error)}"}
    if isinstance(value, bool | int | float):
        return {"kind": "number", "value": plain(value)}
    if isinstance(value, list | tuple) and depth < _DEPTH:
        return {"kind": "list", "items": [described(item, writer, depth + 1) for item in value[:_ITEMS]]}
    return {"kind": "other", "type": type(value).__name__ if value is not None else "None"}


def plain(number: Any) -> Any:
    """A number that JSON can write: NaN and infinities are texts."""
    if isinstance(number, bool | int) or number is None:
        return number
    number = float(number)
    return number if math.isfinite(number) else str(number)


def _tensor(torch: Any, tensor: Any, writer: ValueWriter | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": "tensor", "dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
        "strides": list(tensor.stride()), "device": str(tensor.device), "count": tensor.numel(), "min": None, "max": None,
        "mean": None, "std": None, "nan": 0, "posinf": 0, "neginf": 0, "zeros": 0, "picture": None, "offset": None,
        "bytes": tensor.numel() * tensor.element_size(),
    }  # fmt: skip
    values = tensor.detach()
    if values.is_complex():
        values = values.abs()
    if values.numel():
        exact = values if not values.is_floating_point() else values.to(torch.float64)
        facts["zeros"] = int((exact == 0).sum())
        if values.is_floating_point():
            facts["nan"] = int(torch.isnan(exact).sum())
            facts["posinf"], facts["neginf"] = (int((exact == sign * math.inf).sum()) for sign in (1, -1))
            exact = exact[torch.isfinite(exact)]
        if exact.numel():
            small, large = exact.aminmax() if exact.dtype is not torch.bool else (exact.all(), exact.any())
            facts["min"], facts["max"] = plain(small.item()), plain(large.item())
            wide = exact.to(torch.float64)
            facts["mean"] = plain(wide.mean().item())
            facts["std"] = plain(wide.std(correction=0).item())
        facts["picture"] = _picture(torch, values)
    if writer is not None:
        flat = tensor.detach().cpu().contiguous()
        data = flat.reshape(-1).view(torch.uint8).numpy() if flat.numel() else b""
        facts["offset"] = writer.write(data, facts["bytes"])
    return facts


def _picture(torch: Any, values: Any) -> list[list[Any]] | None:
    """Means of blocks of the last two dimensions, of the first matrix where there are more."""
    if values.dim() < 2 or 1 in values.shape[-2:]:
        return None
    matrix = values[(0,) * (values.dim() - 2)].to(torch.float64)
    rows, columns = (min(size, PICTURE) for size in matrix.shape)
    small = torch.nn.functional.adaptive_avg_pool2d(matrix[None, None], (rows, columns))[0, 0]
    return [[_short(number) for number in row] for row in small.tolist()]


def _short(number: float) -> Any:
    return float(f"{number:.4g}") if math.isfinite(number) else str(number)


def first_line(error: BaseException) -> str:
    """The first line of what an exception says."""
    return (str(error).splitlines() or [""])[0][:300]
