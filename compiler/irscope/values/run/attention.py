"""Attention in float64: the fused kernels of GPUs have no such form, so it is computed by their formula.

The formulas are PyTorch's own: ``aten._scaled_dot_product_attention_math``, and autograd's gradients of it.  The operations
have these names in torch 2.9 to 2.15; arguments are found by their names in the schema.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

_FORWARD = frozenset(f"_scaled_dot_product_{kind}_attention" for kind in ("flash", "efficient", "cudnn"))
_BACKWARD = frozenset(f"{name}_backward" for name in _FORWARD)


def named_arguments(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of a fused kernel by name; None for another operation, or one that drops out at random."""
    schema = getattr(target, "_schema", None)
    if schema is None or _name(target) not in _FORWARD | _BACKWARD:
        return None
    found = dict(zip((each.name for each in schema.arguments), args, strict=False)) | dict(kwargs)
    return found if not found.get("dropout_p") else None


def in_float64(target: Any, named: Mapping[str, Any], narrow: Sequence[Any]) -> list[Any]:
    """The results of a fused kernel.

    Args:
        named: Its arguments, in float64.
        narrow: What the kernel gives in its own dtype: results that are not a function of the numbers (seeds, sizes)
            are taken as they are, and so are shapes.
    """
    backward = _name(target) in _BACKWARD
    return _gradients(named, narrow) if backward else _results(named, narrow)


def on_cpu(target: Any, named: Mapping[str, Any]) -> list[Any]:
    """The results of a fused kernel, which no CPU has, in the dtype of its query and with its strides.

    What is not a function of the numbers (seeds, sizes) is None.
    """
    torch: Any = sys.modules["torch"]
    wide = {
        name: value.to(torch.float64) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in named.items()
    }
    query, count = named["query"], len(target._schema.returns)
    if _name(target) in _BACKWARD:
        inputs = [named.get(name) for name in ("query", "key", "value", "attn_bias")]
        return [None if each is None else each.to(query.dtype) for each in _gradients(wide, inputs[:count])]
    like = (
        query
        if query.shape[-1] == named["value"].shape[-1]
        else query.new_empty((*query.shape[:-1], named["value"].shape[-1]))
    )
    sums = query.new_empty((*query.shape[:3], 1) if "cudnn" in _name(target) else query.shape[:3], dtype=torch.float32)
    result, exact = _results(wide, [like, sums])
    return [result.to(query.dtype), exact.to(torch.float32), *[None] * (count - 2)]


def _results(named: Mapping[str, Any], narrow: Sequence[Any]) -> list[Any]:
    torch: Any = sys.modules["torch"]
    query, key, value = (named[name] for name in ("query", "key", "value"))
    bias, scale = named.get("attn_bias"), named.get("scale")
    causal = bool(named.get("is_causal", False))
    found = list(narrow)
    found[0] = _laid_out_as(_attention(query, key, value, bias, causal, scale), narrow[0])
    sums = found[1]
    if isinstance(sums, torch.Tensor) and sums.dim() >= 3 and sums.shape[2] >= query.shape[2]:
        exact = _log_sum_exp(query, key, bias, causal, scale)
        sums = sums.to(torch.float64)  # kernels pad it
        sums[:, :, : query.shape[2]] = exact if sums.dim() == 3 else exact.unsqueeze(-1)
        found[1] = sums
    return found


def _gradients(named: Mapping[str, Any], narrow: Sequence[Any]) -> list[Any]:
    torch: Any = sys.modules["torch"]
    above = named["grad_out"] if "grad_out" in named else named["grad_out_"]
    bias = named.get("attn_bias")
    with torch.enable_grad():
        query, key, value = leaves = [named[name].detach().requires_grad_() for name in ("query", "key", "value")]
        if len(narrow) > 3 and isinstance(bias, torch.Tensor):
            bias = bias.detach().requires_grad_()
        result = _attention(query, key, value, bias, bool(named.get("is_causal", False)), named.get("scale"))
    wanted = [*leaves, bias][: len(narrow)]
    asked = [each for each in wanted if isinstance(each, torch.Tensor)]
    made = iter(torch.autograd.grad(result, asked, above))
    found = [next(made) if isinstance(each, torch.Tensor) else None for each in wanted]
    return [
        _laid_out_as(own, have) if own is not None and isinstance(have, torch.Tensor) else have
        for own, have in zip(found, narrow, strict=True)
    ]


def _attention(query: Any, key: Any, value: Any, bias: Any, causal: bool, scale: float | None) -> Any:
    aten: Any = sys.modules["torch"].ops.aten
    grouped = query.shape[1] != key.shape[1]
    return aten._scaled_dot_product_attention_math(
        query, key, value, bias, 0.0, causal, None, scale=scale, enable_gqa=grouped
    )[0]


def _laid_out_as(value: Any, kernels: Any) -> Any:
    """With the strides that the kernel gives its result, which views of it rely on."""
    torch: Any = sys.modules["torch"]
    strides = kernels.stride()
    return torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)


def _log_sum_exp(query: Any, key: Any, bias: Any, causal: bool, scale: float | None) -> Any:
    """Over the keys; ``[batch, heads, queries]``."""
    torch: Any = sys.modules["torch"]
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1) if query.shape[1] != key.shape[1] else key
    scores = query @ key.mT * (scale if scale is not None else query.shape[-1] ** -0.5)
    if bias is not None:
        scores = scores + bias
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.logsumexp(scores, -1)


def _name(target: Any) -> str:
    return str(getattr(target, "_schema", None) and target._schema.name).partition("::")[2]
