"""The numbers in a program's inputs and results: finding them, disturbing them, comparing them."""

from __future__ import annotations

import cmath
import dataclasses
import statistics
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from irscope.runner.kept_state import is_own
from irscope.runner.library_state import state_of_object
from irscope.values.check.tolerance import RTOL, SLACK

_DEPTH = 20
_MOST_LEAVES = 10_000
OPAQUE = "an object"
"""In place of a result that is neither a tensor nor a plain value; its type follows."""

Leaf = Any
"""A tensor, or a plain value: bool, int, float, complex, str or None."""


def leaves(value: Any, path: str = "") -> dict[str, Leaf]:
    """The tensors and plain values in a value, by their place in it: ``[0]['logits']``; at most ten thousand.

    A list and a tuple also have a separate value, since callers can tell them apart.
    """
    found: dict[str, Leaf] = {}
    for name, leaf in _leaves(value, path, 0):
        if len(found) >= _MOST_LEAVES:
            break
        found[name] = leaf
    return found


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Leaf]]:
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield path, value.detach().clone()
    elif value is None or isinstance(value, (bool, int, float, complex, str)):
        yield path, value
    elif depth < _DEPTH and isinstance(value, Mapping):
        yield f"{path} (its type)", f"{type(value).__name__} of {', '.join(str(name)[:40] for name in value)}"
        for name, one in value.items():
            yield from _leaves(one, f"{path}[{str(name)[:40]!r}]", depth + 1)
    elif depth < _DEPTH and isinstance(value, (tuple, list)):
        if type(value) in (tuple, list):
            yield f"{path} (its type)", type(value).__name__
        for number, one in enumerate(value):
            yield from _leaves(one, f"{path}[{number}]", depth + 1)
    elif depth < _DEPTH and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name, None), f"{path}.{field.name}", depth + 1)
    elif isinstance(value, (set, frozenset)):
        yield path, f"{type(value).__name__} of {', '.join(sorted(map(str, value)))}"
    elif (state := state_of_object(value)) is not None:
        yield path, state[1]
    elif depth < _DEPTH and is_own(type(value)) and getattr(value, "__dict__", None):
        for name, one in vars(value).items():
            yield from _leaves(one, f"{path}.{name}", depth + 1)
    else:
        yield path, f"{OPAQUE}: {type(value).__name__}"


# --- disturbing -------------------------------------------------------------------------------------------------------


def _noisy(tensor: Any, torch: Any) -> Any:
    scale = tensor.std(correction=0) if tensor.numel() > 1 else tensor.abs().max() if tensor.numel() else 1.0
    return tensor + 0.5 * scale * torch.randn(tensor.shape, device=tensor.device).to(tensor.dtype)


def _shuffled(tensor: Any, torch: Any) -> Any:
    """The same elements in another order: indices stay valid, whatever they index."""
    order = torch.randperm(tensor.numel()).to(tensor.device)
    return tensor.reshape(-1)[order].reshape(tensor.shape)


def _negated(tensor: Any, torch: Any) -> Any:
    return -tensor


def _larger(tensor: Any, torch: Any) -> Any:
    return tensor * 16 + 4


def _smaller(tensor: Any, torch: Any) -> Any:
    return tensor / 64 - 0.01


def _alike(tensor: Any, torch: Any) -> Any:
    """What asks whether any or all elements are so gets the same answer for all: no token goes to an expert, or each."""
    return tensor.abs().max().expand(tensor.shape)


def _alike_below(tensor: Any, torch: Any) -> Any:
    return -_alike(tensor, torch)


def _far_above(tensor: Any, torch: Any) -> Any:
    return 100 * _alike(tensor, torch)


def _far_below(tensor: Any, torch: Any) -> Any:
    """A bias does not outweigh it."""
    return -100 * _alike(tensor, torch)


def _zero(tensor: Any, torch: Any) -> Any:
    """A divisor, or the argument of a root or a logarithm, is zero in a side that does not count."""
    return torch.zeros_like(tensor)


def _alike_and_small(tensor: Any, torch: Any) -> Any:
    return _alike(tensor, torch) / 100


def not_a_number(tensor: Any, torch: Any) -> Any:
    """One element: what asks for it goes the other way.  Gradients are not compared then."""
    other = tensor.reshape(-1).clone()
    other[0] = float("nan")
    return other.reshape(tensor.shape)


DISTURBANCES: dict[str, Callable[[Any, Any], Any] | None] = {
    "the run's inputs": None, "with noise": _noisy, "negated": _negated, "larger": _larger, "smaller": _smaller,
    "all alike": _alike, "all alike and negative": _alike_below, "all alike and far above": _far_above,
    "all alike and far below": _far_below, "all zero": _zero, "all alike and small": _alike_and_small, "with NaN": not_a_number,
}  # fmt: skip
"""How inputs are changed, by name: floating-point elements as it says.  Other elements change places, or become all like
the largest or the smallest of them."""


def disturbed(
    value: Any,
    how: Callable[[Any, Any], Any] | None,
    fixed: Collection[str] = (),
    path: str = "",
    known: dict[int, Any] | None = None,
) -> Any:
    """A copy of inputs with other numbers; shapes, dtypes and Python values stay.

    Args:
        fixed: Places of tensors, as `leaves` names them, whose numbers stay, too.
        path: The place of the value itself.
        known: Copies of tensors that are there several times, by the ``id()`` of these.
    """
    torch: Any = sys.modules["torch"]
    known = {} if known is None else known
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            known[id(value)] = _disturbed_tensor(value, None if path in fixed else how, torch)
        return known[id(value)]
    if type(value) in (tuple, list):
        return type(value)(disturbed(one, how, fixed, f"{path}[{number}]", known) for number, one in enumerate(value))
    if type(value) is dict:
        return {name: disturbed(one, how, fixed, f"{path}[{str(name)[:40]!r}]", known) for name, one in value.items()}
    return value


def numbers_in(value: Any) -> list[str]:
    """The places of plain numbers in a value."""
    return [place for place, leaf in leaves(value).items() if isinstance(leaf, (bool, int, float))]


def _disturbed_tensor(tensor: Any, how: Callable[[Any, Any], Any] | None, torch: Any) -> Any:
    detached = tensor.detach()
    if how is None or not detached.numel():
        other = detached.clone()
    elif detached.is_floating_point():
        other = how(detached, torch).to(detached.dtype)
    elif detached.dtype is torch.bool and how is _negated:
        other = ~detached
    elif how is _zero:
        other = torch.zeros_like(detached)
    elif how in (_alike, _alike_below, _far_above, _far_below):  # one of the elements for all: an index stays valid
        other = (detached.amax() if how in (_alike, _far_above) else detached.amin()).expand(detached.shape)
    else:
        other = _shuffled(detached, torch)
    same = torch.empty_strided(detached.shape, detached.stride(), dtype=detached.dtype, device=detached.device)
    other = same.copy_(other) if how is not None and _is_dense(detached) else other
    return other.requires_grad_(tensor.requires_grad)


def _is_dense(tensor: Any) -> bool:
    """Whether no two elements share memory, so that the strides can be kept."""
    return bool(tensor.numel()) and 0 not in tensor.stride() and tensor.layout is sys.modules["torch"].strided


# --- comparing --------------------------------------------------------------------------------------------------------


def difference(expected: Leaf, found: Leaf, slack: int = 1, floor: float = 0.0) -> tuple[str, bool]:
    """How two leaves differ, in words, and whether the numbers do; an empty text if they are equal.

    A number where the other has a tensor of the same value differs only in its type.

    Args:
        slack: How many times the usual rounding is allowed.
        floor: What elements of tensors may be apart in any case.
    """
    torch: Any = sys.modules["torch"]
    if isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor):
        return _tensor_difference(expected, found, slack, floor), True
    if isinstance(expected, torch.Tensor) or isinstance(found, torch.Tensor):
        return _type_difference(expected, found, torch)
    if type(expected) is not type(found):
        return f"a {type(found).__name__} in place of a {type(expected).__name__}", True
    if isinstance(expected, (float, complex)) and expected == expected:
        return ("" if _is_near(expected, found) else f"{found} in place of {expected}"), True
    same = expected == found or (expected != expected and found != found)
    return ("" if same else f"{str(found)[:60]} in place of {str(expected)[:60]}"), True


def _type_difference(expected: Leaf, found: Leaf, torch: Any) -> tuple[str, bool]:
    tensor, number = (expected, found) if isinstance(expected, torch.Tensor) else (found, expected)
    if isinstance(number, (bool, int, float)) and tensor.numel() == 1 and not tensor.is_complex():
        value = tensor.detach().double().item()
        if _is_near(value, float(number)) or (value != value and number != number):
            words = ("a tensor", "a Python number") if tensor is found else ("a Python number", "a tensor")
            return f"{words[0]} in place of {words[1]} of the same value", False
    return f"a {type(found).__name__} in place of a {type(expected).__name__}", True


def _is_near(expected: complex, found: complex) -> bool:
    return cmath.isclose(expected, found, rel_tol=1e-5, abs_tol=1e-11)  # infinity is near infinity only


def _tensor_difference(expected: Any, found: Any, slack: int, floor: float) -> str:
    torch: Any = sys.modules["torch"]
    if expected.dtype != found.dtype:
        return f"{_name(found.dtype)} in place of {_name(expected.dtype)}"
    if expected.shape != found.shape:
        return f"shape {tuple(found.shape)} in place of {tuple(expected.shape)}"
    if expected.layout is not torch.strided or expected.is_quantized:
        return "" if str(expected) == str(found) else "other elements"
    rtol = RTOL.get(_name(expected.dtype))
    if rtol is None:
        unequal = int((expected != found).sum())
        return f"{unequal} of {expected.numel()} elements differ" if unequal else ""
    wide = torch.complex128 if expected.is_complex() else torch.float64
    left, right = expected.to("cpu", wide), found.to("cpu", wide)
    same = (left == right) | (left.isnan() & right.isnan())
    near = (left - right).abs() <= slack * rtol * (left.abs() + _rms(left)) + floor
    far = ~(same | (near & right.isfinite()))
    if not bool(far.any()):
        return ""
    where = int(far.reshape(-1).nonzero()[0])
    was, now = left.reshape(-1)[where].item(), right.reshape(-1)[where].item()
    return f"{int(far.sum())} of {far.numel()} elements differ; the first was {was:.6g}, now {now:.6g}"


def rounding_of_gradients(gradients: Iterable[Leaf]) -> float:
    """What a gradient in float32 that is zero may be instead, in the units of the gradients of the same call.

    The bias of the keys of an attention, as an example, changes no result.  Its gradient is a sum that cancels, so only
    the rounding of its terms is left, and these are as large as other gradients are.
    """
    torch: Any = sys.modules["torch"]
    # Rounding to 16 bits is some percent of a gradient, and would hide a lost one.  A single large gradient does not count.
    tensors = [leaf for leaf in gradients if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32]
    sizes = [_rms(tensor.to("cpu", torch.float64)) for tensor in tensors if tensor.layout is torch.strided]
    return SLACK * float(torch.finfo(torch.float32).eps) * statistics.median_high(sizes) if sizes else 0.0


def _rms(tensor: Any) -> float:
    finite = tensor[tensor.isfinite()]
    return float(finite.abs().square().mean().sqrt()) if finite.numel() else 0.0


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
