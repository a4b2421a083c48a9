"""The attention operator that PyTorch would choose on a GPU.

PyTorch chooses it in C++ when forward and backward are traced, by the device of the tensors, which here is the CPU.  So
the calls in Dynamo's graph are replaced by a function that chooses as PyTorch does for CUDA and ROCm
(``sdp::select_sdp_backend`` and ``scaled_dot_product_attention`` in ATen, read in 2.13 and 2.15).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.vocabulary.records import dataclass

_VERSIONS = "2.11 and 2.13"
_LOWEST_OF_CUDNN = -65504.0
_CUDNN, _FLASH, _EFFICIENT, _MATH = "cudnn", "flash", "efficient", "math"


def attention_hooks() -> list[Hook]:
    """Replaces the functions of attention that are called while a program is compiled for the device."""

    def called(functional: types.ModuleType) -> Undo:
        # By multi_head_attention_forward, which is one node of Dynamo's graph.
        return replace_attribute(functional, "scaled_dot_product_attention", attention)

    def put_there(passes: types.ModuleType) -> Undo:
        return replace_attribute(passes, "_scaled_dot_product_attention", attention)

    what = "attention as on the device"
    return [
        Hook(what, "torch.nn.functional", _VERSIONS, called),
        Hook(f"{what}, of Inductor's passes", "torch._inductor.fx_passes.fuse_attention", _VERSIONS, put_there),
    ]


def use_that_of_the_device(program: Any) -> None:
    """Replaces the calls of attention in a graph, and those in the graphs in it."""
    torch: Any = sys.modules["torch"]
    on_any = (torch._C._nn.scaled_dot_product_attention, torch.ops.aten.scaled_dot_product_attention.default)
    for module in program.modules() if hasattr(program, "modules") else ():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.op == "call_function" and node.target in on_any:
                    node.target = attention
            module.recompile()


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
    if torch.is_autocast_enabled("cpu"):
        lower = torch.get_autocast_dtype("cpu")
        query, key, value, attn_mask = (
            tensor.to(lower) if tensor is not None and tensor.dtype is torch.float32 else tensor
            for tensor in (query, key, value, attn_mask)
        )
    operator = chosen(torch, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        lowest = _LOWEST_OF_CUDNN if operator == _CUDNN else float("-inf")
        least = torch.scalar_tensor(lowest, dtype=query.dtype, device=attn_mask.device)
        attn_mask = torch.ops.aten.where.ScalarSelf(attn_mask, 0.0, least)
    options = _Options(dropout_p, is_causal, scale, enable_gqa)
    return _OPERATORS[operator](torch, (query, key, value), attn_mask, options)


# --- the operators ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Options:
    dropout: float
    causal: bool
    scale: float | None
    grouped: bool


_Tensors = tuple[Any, Any, Any]
"""Query, key and value."""


def _cudnn(torch: Any, tensors: _Tensors, mask: Any, options: _Options) -> Any:
    operator, sums = torch.ops.aten._scaled_dot_product_cudnn_attention, _needs_sums(torch, tensors)
    return operator(*tensors, mask, sums, options.dropout, options.causal, False, scale=options.scale)[0]


def _flash(torch: Any, tensors: _Tensors, mask: Any, options: _Options) -> Any:
    aten, size = torch.ops.aten, tensors[0].size(-1)
    scale = float(size) ** -0.5 if options.scale is None else options.scale
    padded = [_padded(aten, tensor) for tensor in tensors]
    operator = aten._scaled_dot_product_flash_attention
    result = operator(*padded, options.dropout, options.causal, False, scale=scale)[0]
    return result if size % 8 == 0 else aten.slice(result, -1, 0, size)


def _efficient(torch: Any, tensors: _Tensors, mask: Any, options: _Options) -> Any:
    aten, (query, key, _) = torch.ops.aten, tensors
    if mask is not None:
        mask = _aligned(aten, mask).expand(query.size(0), query.size(1), query.size(2), key.size(2))
    operator, sums = aten._scaled_dot_product_efficient_attention, _needs_sums(torch, tensors)
    return operator(*tensors, mask, sums, options.dropout, options.causal, scale=options.scale)[0]


def _math(torch: Any, tensors: _Tensors, mask: Any, options: _Options) -> Any:
    operator = torch.ops.aten._scaled_dot_product_attention_math
    scale, grouped = options.scale, options.grouped
    return operator(*tensors, mask, options.dropout, options.causal, None, scale=scale, enable_gqa=grouped)[0]


_OPERATORS = {_CUDNN: _cudnn, _FLASH: _flash, _EFFICIENT: _efficient, _MATH: _math}


def _needs_sums(torch: Any, tensors: _Tensors) -> bool:
    """Whether a backward will ask for the logarithms of the sums."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _padded(aten: Any, tensor: Any) -> Any:
    rest = tensor.size(-1) % 8
    return aten.pad(tensor, [0, 8 - rest]) if rest else tensor


def _aligned(aten: Any, mask: Any) -> Any:
    """The memory-efficient operator wants rows of a mask at multiples of 16 elements."""
    if mask.stride(-1) == 1 and all(stride % 16 == 0 for stride in mask.stride()[:-1]):
        return mask
    size = mask.size(-1)
    return aten.slice(aten.pad(mask, [0, 16 - size % 16]), -1, 0, size)


# --- the choice -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Call:
    """A call of attention, and what several operators ask about it: a comparison of dynamic sizes is a guard, so each is
    made once, and in the same order for all devices.

    Args:
        half: Whether the numbers have 16 bits.
        fits: Whether batches and heads are the same, or the heads grouped and that is allowed.
        rows_are_whole: Whether the last dimension of each tensor, and of the mask, is contiguous.
        wide, deep: The sizes of a head: of queries, and of values.
    """

    torch: Any
    query: Any
    key: Any
    mask: Any
    dropout: float
    causal: bool
    is_amd: bool
    half: bool
    is_grouped: bool
    fits: bool
    rows_are_whole: bool
    wide: Any
    deep: Any
    same_width: bool


_NEEDS: dict[str, tuple[Callable[[_Call], Any], ...]] = {
    _CUDNN: (
        lambda call: call.torch.backends.cuda.cudnn_sdp_enabled(),
        lambda call: not call.is_amd,
        lambda call: call.half,
        lambda call: call.fits,
        lambda call: call.rows_are_whole,
        lambda call: float(call.dropout * 16).is_integer(),
        lambda call: call.mask is None or _cudnn_takes(call.mask, call.query, call.key),
        lambda call: call.wide % 8 == 0,
        lambda call: call.deep % 8 == 0,
        lambda call: call.wide <= 128,
        lambda call: call.deep <= 128,
        lambda call: call.key.size(2) != 1,
        lambda call: not (call.dropout and call.query.size(2) == 1),
        lambda call: not call.torch.are_deterministic_algorithms_enabled(),
    ),
    _FLASH: (
        lambda call: call.torch.backends.cuda.flash_sdp_enabled(),
        lambda call: call.half,
        lambda call: call.fits,
        lambda call: call.rows_are_whole,
        lambda call: call.mask is None,
        lambda call: call.same_width,
        lambda call: call.wide <= 256,
        lambda call: not (call.causal and call.query.size(2) != call.key.size(2)),
    ),
    _EFFICIENT: (
        lambda call: call.torch.backends.cuda.mem_efficient_sdp_enabled(),
        lambda call: call.fits,
        lambda call: not (call.is_grouped and call.is_amd),
        lambda call: call.half or call.query.dtype is call.torch.float32,
        lambda call: call.wide == call.key.size(-1),
        lambda call: call.wide % (8 if call.half else 4) == 0,
        lambda call: call.deep % (8 if call.half else 4) == 0,
        lambda call: call.rows_are_whole,
    ),
}
"""What each operator needs; the one that needs nothing is that of plain arithmetic."""

_WITH_CUDNN_FIRST = (9, 10)
"""The major compute capabilities on which cuDNN's operator is preferred; on others it is never chosen."""


def chosen(torch: Any, query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, grouped: bool) -> str:
    """The operator that PyTorch chooses on the device of this process: the first whose needs are all met."""
    major, _ = torch.cuda.get_device_capability()
    tensors = (query, key, value)
    if any(tensor.dim() != 4 for tensor in tensors) or not query.dtype == key.dtype == value.dtype:
        return _MATH
    if any(tensor.size(2) == 0 for tensor in tensors):
        return _MATH
    call = _call_of(torch, tensors, mask, dropout, causal, grouped)
    usable = [operator for operator, needs in _NEEDS.items() if all(is_met(call) for is_met in needs)]
    if major not in _WITH_CUDNN_FIRST:
        usable = [operator for operator in usable if operator != _CUDNN]
    return next(iter(usable), _MATH)


def _call_of(torch: Any, tensors: _Tensors, mask: Any, dropout: float, causal: bool, grouped: bool) -> _Call:
    query, key, value = tensors
    heads = [tensor.size(1) for tensor in tensors]
    is_grouped = not heads[0] == heads[1] == heads[2]
    # Compared and not collected: a dynamic size has no hash.
    fits = query.size(0) == key.size(0) == value.size(0) and (not is_grouped or grouped)
    whole = all(tensor.stride(-1) == 1 for tensor in (*tensors, *(() if mask is None else (mask,))))
    wide, deep = query.size(-1), value.size(-1)
    return _Call(
        torch=torch,
        query=query,
        key=key,
        mask=mask,
        dropout=dropout,
        causal=causal,
        is_amd=bool(torch.version.hip),
        half=query.dtype in (torch.float16, torch.bfloat16),
        is_grouped=is_grouped,
        fits=fits,
        rows_are_whole=whole,
        wide=wide,
        deep=deep,
        same_width=wide == key.size(-1) == deep,
    )


def _cudnn_takes(mask: Any, query: Any, key: Any) -> bool:
    """Whether a mask can be broadcast to the scores, and gets no gradient."""
    shape = (query.size(0), query.size(1), query.size(2), key.size(2))
    fits = all(given in (1, wanted) for given, wanted in zip(mask.shape[::-1], shape[::-1], strict=False))
    return fits and mask.dim() in (2, 4) and not mask.requires_grad
