"""What TVM's importer gets wrong or refuses, in simpler operators."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def simpler_for(program: Any) -> dict[Any, Callable[..., Any]]:
    """How each such operator in an exported program is written out."""
    aten: Any = sys.modules["torch"].ops.aten
    table: dict[Any, Callable[..., Any]] = {
        aten.scaled_dot_product_attention.default: _attention,
        aten.cumsum.default: _cumsum,
    }
    used = {node.target for node in program.graph.nodes if node.op == "call_function"}
    return {operator: simpler for operator, simpler in table.items() if operator in used}


def _cumsum(tensor: Any, dim: int, *, dtype: Any = None) -> Any:
    """TVM counts in the type of the tensor, also where that is bool."""
    torch: Any = sys.modules["torch"]
    if tensor.dtype is not torch.bool or dtype is not None:
        return NotImplemented
    return torch.cumsum(tensor.to(torch.int64), dim)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """TVM takes a mask of floating point only."""
    torch: Any = sys.modules["torch"]
    if dropout_p != 0.0 or enable_gqa:
        return NotImplemented
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = torch.where(attn_mask, scores, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    if attn_mask is not None:  # a row without any key gives zeros
        weights = torch.where((scores == float("-inf")).all(-1, keepdim=True), 0.0, weights)
    result = weights @ value
    if query.dim() < 4:
        return result
    return result.transpose(1, 2).contiguous().transpose(1, 2)  # the strides that PyTorch gives it
