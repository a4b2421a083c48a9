"""Copies of a call's arguments, and the largest difference between what two programs give."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Program = Callable[..., Any]


def cloned(value: Any) -> Any:
    """The same with copies of the tensors in it; containers of other kinds are shared."""
    if isinstance(value, sys.modules["torch"].Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (tuple, list):
        return type(value)(cloned(one) for one in value)
    return {name: cloned(one) for name, one in value.items()} if type(value) is dict else value


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers begin with a seed, and go on as before afterwards."""
    torch: Any = sys.modules["torch"]
    # A pipeline may have registered another device, whose generators cannot be read.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def largest_difference(
    program: Program, compiled: Program, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any] | None, str]:
    """The largest difference between the numbers of two programs; None and why if it cannot be told.

    ``absolute`` is between two elements, and ``relative`` is that over the largest element of the program itself.
    """
    expected, other = _output(program, args, kwargs, 0), _output(program, args, kwargs, 1)
    if _between(expected, other)[1]:
        return None, "The program itself gives other numbers from call to call."
    found = _output(compiled, args, kwargs, 0)
    if [tuple(one.shape) for one in expected] != [tuple(one.shape) for one in found]:
        return None, "It gives tensors of other shapes."
    if not expected:
        return None, "The program gives no tensor."
    largest, is_different = _between(expected, found)
    if largest is None:
        return None, "One of them gives infinity or NaN where the other does not."
    scale = max((float(_wide(one).abs().max()) for one in expected if one.numel()), default=0.0)
    dtype = str(expected[0].dtype).removeprefix("torch.")
    relative = largest / scale if scale else float(is_different)
    return {"absolute": largest, "relative": relative, "dtype": dtype}, ""


def _output(program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> list[Any]:
    """The tensors that a call gives; what it changes of its inputs and of its module is put back."""
    kept = _state(program)
    with seeded(seed):
        found = list(_tensors(program(*cloned(args), **cloned(kwargs)), 0))
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        for tensor, version, before in kept:
            if tensor._version != version:  # else a write would be a change: what was exported runs while there is none
                tensor.copy_(before)
    return found


def _state(program: Program) -> list[tuple[Any, int, Any]]:
    """The buffers of a module, with versions and copies: parameters change in the optimizer only."""
    module = getattr(program, "_orig_mod", program)
    buffers = module.buffers() if isinstance(module, sys.modules["torch"].nn.Module) else ()
    return [(one, one._version, one.detach().clone()) for one in buffers if not one.is_inference()]


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value.detach().clone()
    elif isinstance(value, Mapping) and depth < _DEPTH:
        for one in value.values():
            yield from _tensors(one, depth + 1)
    elif isinstance(value, (tuple, list)) and depth < _DEPTH:
        for one in value:
            yield from _tensors(one, depth + 1)


_DEPTH = 20


def _wide(tensor: Any) -> Any:
    """On the CPU and in the widest type: booleans have no absolute value, and the smallest integer's overflows."""
    torch: Any = sys.modules["torch"]
    return tensor.to("cpu", torch.complex128 if tensor.is_complex() else torch.float64)


def _between(expected: list[Any], found: list[Any]) -> tuple[float | None, bool]:
    """The largest absolute difference, None if it is not a number; and whether there is one."""
    torch: Any = sys.modules["torch"]
    largest = 0.0
    for left, right in zip(expected, found, strict=False):
        left, right = _wide(left), _wide(right).to(_wide(left).dtype)
        same = (left == right) | (left.isnan() & right.isnan())
        gap = torch.where(same, torch.zeros_like(left), left - right).abs()
        if not bool(gap.isfinite().all()):
            return None, True
        largest = max(largest, float(gap.max()) if gap.numel() else 0.0)
    return largest, largest > 0
