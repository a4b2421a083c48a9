"""The attention operator that PyTorch would choose on a GPU.

PyTorch chooses it in C++ when forward and backward are traced, by the device of the tensors, which here is the CPU.  So
the calls in Dynamo's graph are replaced by a function that chooses as PyTorch does for CUDA and ROCm
(``sdp::select_sdp_backend`` and ``scaled_dot_product_attention`` in ATen, read in 2.13 and 2.15).
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_LOWEST_OF_CUDNN = -65504.0
_CUDNN, _FLASH, _EFFICIENT, _MATH = "cudnn", "flash", "efficient", "math"


def use_that_of_the_device(program: Any) -> None:
    """Replaces the calls of attention in a graph, those in the graphs in it, and in those that passes put there."""
    torch: Any = sys.modules["torch"]
    on_any = (torch._C._nn.scaled_dot_product_attention, torch.ops.aten.scaled_dot_product_attention.default)
    for module in program.modules() if hasattr(program, "modules") else ():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.op == "call_function" and node.target in on_any:
                    node.target = attention
            module.recompile()
    torch.nn.functional.scaled_dot_product_attention = attention  # for multi_head_attention_forward, which is one node
    passes: Any = importlib.import_module("torch._inductor.fx_passes.fuse_attention")
    passes._scaled_dot_product_attention = attention


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``torch.nn.functional.scaled_dot_product_attention`` as on the device of this process."""
    torch: Any = sys.modules["torch"]
    aten = torch.ops.aten
    if torch.is_autocast_enabled("cpu"):
        lower = torch.get_autocast_dtype("cpu")
        query, key, value, attn_mask = (
            each.to(lower) if each is not None and each.dtype is torch.float32 else each
            for each in (query, key, value, attn_mask)
        )
    chosen = _choose(torch, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        lowest = _LOWEST_OF_CUDNN if chosen == _CUDNN else float("-inf")
        least = torch.scalar_tensor(lowest, dtype=query.dtype, device=attn_mask.device)
        attn_mask = aten.where.ScalarSelf(attn_mask, 0.0, least)
    needs_sums = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    if chosen == _CUDNN:
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, attn_mask, needs_sums, dropout_p, is_causal, False, scale=scale
        )[0]
    if chosen == _FLASH:
        size = query.size(-1)
        scale = float(size) ** -0.5 if scale is None else scale
        padded = [_padded(aten, each) for each in (query, key, value)]
        found = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False, scale=scale)[0]
        return found if size % 8 == 0 else aten.slice(found, -1, 0, size)
    if chosen == _EFFICIENT:
        if attn_mask is not None:
            attn_mask = _aligned(aten, attn_mask).expand(query.size(0), query.size(1), query.size(2), key.size(2))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, needs_sums, dropout_p, is_causal, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def _padded(aten: Any, tensor: Any) -> Any:
    rest = tensor.size(-1) % 8
    return aten.pad(tensor, [0, 8 - rest]) if rest else tensor


def _aligned(aten: Any, mask: Any) -> Any:
    """The memory-efficient operator wants rows of a mask at multiples of 16 elements."""
    if mask.stride(-1) == 1 and all(stride % 16 == 0 for stride in mask.stride()[:-1]):
        return mask
    size = mask.size(-1)
    return aten.slice(aten.pad(mask, [0, 16 - size % 16]), -1, 0, size)


def _choose(
    torch: Any, query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, grouped: bool
) -> str:
    major, _ = torch.cuda.get_device_capability()
    is_amd, cuda = bool(torch.version.hip), torch.backends.cuda
    half = query.dtype in (torch.float16, torch.bfloat16)
    tensors, same_type = (query, key, value), query.dtype == key.dtype == value.dtype
    if any(each.dim() != 4 for each in tensors) or not same_type or any(each.size(2) == 0 for each in tensors):
        return _MATH
    heads = [each.size(1) for each in tensors]
    is_grouped = not heads[0] == heads[1] == heads[2]
    # Compared and not collected: a dynamic size has no hash.
    fits = query.size(0) == key.size(0) == value.size(0) and (not is_grouped or grouped)
    rows_are_whole = all(each.stride(-1) == 1 for each in (*tensors, *(() if mask is None else (mask,))))
    wide, deep = query.size(-1), value.size(-1)
    same_width = wide == key.size(-1) == deep
    can = {
        _CUDNN: (
            cuda.cudnn_sdp_enabled() and not is_amd and half and fits and rows_are_whole and _cudnn_takes(dropout, mask, query, key)
            and wide % 8 == 0 and deep % 8 == 0 and wide <= 128 and deep <= 128 and key.size(2) != 1
            and not (dropout and query.size(2) == 1) and not torch.are_deterministic_algorithms_enabled()
        ),
        _FLASH: (
            cuda.flash_sdp_enabled() and half and fits and rows_are_whole and mask is None and same_width
            and wide <= 256 and not (causal and query.size(2) != key.size(2))
        ),
        _EFFICIENT: (
            cuda.mem_efficient_sdp_enabled() and fits and not (is_grouped and is_amd)
            and query.dtype in (torch.float16, torch.bfloat16, torch.float32) and wide == key.size(-1)
            and wide % (8 if half else 4) == 0 and deep % (8 if half else 4) == 0
            and rows_are_whole
        ),
    }  # fmt: skip
    first = (_CUDNN, _FLASH, _EFFICIENT) if major in (9, 10) and not is_amd else (_FLASH, _EFFICIENT)
    return next((each for each in first if can[each]), _MATH)


def _cudnn_takes(dropout: float, mask: Any, query: Any, key: Any) -> bool:
    if not float(dropout * 16).is_integer():
        return False
    if mask is None:
        return True
    shape = (query.size(0), query.size(1), query.size(2), key.size(2))
    fits = all(given in (1, wanted) for given, wanted in zip(mask.shape[::-1], shape[::-1], strict=False))
    return fits and mask.dim() in (2, 4) and not mask.requires_grad
