"""Copies of a call's arguments, and the largest difference between what two programs give."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irscope.values.run.copies import clones

Program = Callable[..., Any]


def cloned(value: Any) -> Any:
    """The same with copies of the tensors in it; containers of other kinds are shared.

    Guards ask for what a call is given: a tensor that is there twice is one copy, and strides, shared memory and parameters
    are as they were.  So all arguments of a call are copied at once.
    """
    torch: Any = sys.modules["torch"]
    tensors = list({id(tensor): tensor for tensor in _tensors_in(value)}.values())
    copies: dict[int, Any] = {}
    for tensor, copy in zip(tensors, clones(tensors), strict=True):
        if type(tensor) is torch.nn.Parameter:
            copies[id(tensor)] = torch.nn.Parameter(copy, tensor.requires_grad)
        else:
            copies[id(tensor)] = copy.requires_grad_(tensor.requires_grad)
    return _replaced(value, copies)


def _tensors_in(value: Any) -> Iterator[Any]:
    if isinstance(value, sys.modules["torch"].Tensor):
        yield value
    elif type(value) in (tuple, list, dict):
        for one in value.values() if type(value) is dict else value:
            yield from _tensors_in(one)


def _replaced(value: Any, copies: Mapping[int, Any]) -> Any:
    """The value with the copies of its tensors, by the ``id()`` of these."""
    if type(value) in (tuple, list):
        return type(value)(_replaced(one, copies) for one in value)
    if type(value) is dict:
        return {name: _replaced(one, copies) for name, one in value.items()}
    return copies.get(id(value), value)


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
    buffers = Buffers(program)
    own_args, own_kwargs = cloned((args, kwargs))
    with seeded(seed):
        found = list(_tensors(program(*own_args, **own_kwargs), 0))
    buffers.put_back()
    return found


class Buffers:
    """The buffers of a module, with versions and copies: parameters change in the optimizer only."""

    def __init__(self, program: Program) -> None:
        module = getattr(program, "_orig_mod", program)
        named = module.named_buffers() if isinstance(module, sys.modules["torch"].nn.Module) else ()
        self._kept = [(name, one, one._version, one.detach().clone()) for name, one in named if not one.is_inference()]

    def changed(self) -> list[str]:
        """The names of those that were written since."""
        return [name for name, tensor, version, _ in self._kept if tensor._version != version]

    def put_back(self) -> None:
        """Gives the tensors the values that they had."""
        with sys.modules["torch"].no_grad():
            for _, tensor, version, before in self._kept:
                # Else a write would be a change: what was exported runs while there is none.
                if tensor._version != version:
                    tensor.copy_(before)


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
