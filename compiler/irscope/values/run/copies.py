"""Copies of tensors that keep what compiled code looks at: strides, overlaps and memory that is shared."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def clones(values: Sequence[Any]) -> list[Any]:
    """Copies with the same strides and overlaps; tensors that share memory share it afterwards, too."""
    torch: Any = sys.modules["torch"]
    by_memory: dict[Any, Any] = {}
    copies: list[Any] = []
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    homes = [_memory_of(tensor) for tensor in tensors]
    shared = {home for home in homes if home is not None and homes.count(home) > 1} if len(homes) < 4096 else set()
    for value in values:
        if not isinstance(value, torch.Tensor):
            copies.append(value)
            continue
        home = _memory_of(value)
        if home is None:
            copies.append(value.detach().clone())
            continue
        if home in shared:
            if home not in by_memory:
                by_memory[home] = value.untyped_storage().clone()
            whole = torch.empty(0, dtype=value.dtype, device=value.device).set_(by_memory[home])
            copies.append(whole.as_strided(value.shape, value.stride(), value.storage_offset()))
            continue
        extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
        if extent == value.numel() and (copy := value.detach().clone()).stride() == value.stride():
            copies.append(copy)
            continue
        flat = value.detach().as_strided((extent if value.numel() else 0,), (1,), value.storage_offset())
        copies.append(flat.clone().as_strided(value.shape, value.stride(), 0))
    return copies


def _memory_of(tensor: Any) -> int | None:
    """Where a plain strided tensor's memory begins; None for any other kind."""
    torch: Any = sys.modules["torch"]
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    if not is_plain or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return None
    try:
        return int(tensor.untyped_storage().data_ptr())
    except RuntimeError:  # a device whose tensors have no memory that one can see, as PyTorch/XLA's
        return None
