"""The distance between compiled code, eager mode and float64 at one node; `tolerance` describes the criterion."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any

from irscope.values.check.tolerance import PASS_RTOL, RTOL, SLACK
from irscope.values.run.statistics import plain
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Measure:
    """How far compiled code is off at one node.

    Args:
        ratio: The largest error as a multiple of what is allowed; above 1 it differs.
        compiled, eager, rounding: Largest errors against float64, of the compiled value, of eager mode, by disturbance.
        allowed: At the worst element.
        index: Index of the worst element; empty for a scalar.
        numbers: What compiled code, eager mode and float64 have there.
        why: A sentence where it is not a matter of size: NaN, infinities, integers.
    """

    ratio: float
    compiled: float
    eager: float
    rounding: float
    allowed: float
    index: tuple[int, ...]
    numbers: tuple[float, float, float]
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether the distance is over what is allowed; a ratio that is not a number counts as over."""
        return not self.ratio <= 1

    def data(self) -> dict[str, Any]:
        """The measure as JSON values."""
        return {
            "ratio": plain(self.ratio), "compiled": plain(self.compiled), "eager": plain(self.eager),
            "rounding": plain(self.rounding), "allowed": plain(self.allowed), "index": list(self.index),
            "numbers": [plain(number) for number in self.numbers], "why": self.why,
        }  # fmt: skip


def measure(compiled: Any, eager: Any, wide: Any, noisy: Any, exact: bool = False) -> Measure | None:
    """Compares the tensors of one node; None if they cannot be compared (other shapes: another layout of a buffer).

    Args:
        wide, noisy: In float64: undisturbed, and disturbed by roundings.
        exact: Integers: no floating-point number is above them.
    """
    if compiled.shape != eager.shape:
        if compiled.numel() != eager.numel() or not compiled.is_contiguous():
            return None
        compiled = compiled.reshape(eager.shape)
    if compiled.numel() == 0:
        return Measure(0.0, 0.0, 0.0, 0.0, 0.0, (), (0.0, 0.0, 0.0))
    dtype = str(eager.dtype).removeprefix("torch.")
    if dtype not in RTOL:
        return _whole_numbers(compiled, eager, wide, noisy, exact)
    c, e, r, n = (_parts(each) for each in (compiled, eager, wide, noisy))
    if (broken := _patterns(c, e, r, dtype)) is not None:
        return broken
    torch: Any = sys.modules["torch"]
    finite = torch.isfinite(c) & torch.isfinite(r)
    zero = torch.zeros((), dtype=torch.float64, device=c.device)
    error = torch.where(finite, (c - r).abs(), zero)
    of_eager, of_noise = (
        float(torch.where(torch.isfinite(each) & torch.isfinite(r), (each - r).abs(), zero).max()) for each in (e, n)
    )
    size = torch.where(torch.isfinite(r), r.abs(), zero)
    rms = float(size.square().mean().sqrt())
    allowed = RTOL[dtype] * (size + rms) + SLACK * max(of_eager, of_noise)
    ratio = torch.where(error == 0, zero, error / allowed)
    worst = int(ratio.argmax())
    return Measure(
        float(ratio.flatten()[worst]), float(error.max()), of_eager, of_noise, float(allowed.flatten()[worst]),
        _index(worst, ratio.shape), _numbers(worst, c, e, r),
    )  # fmt: skip


def farthest(one: Any, other: Any) -> float | None:
    """The largest difference of two tensors where both are finite; None if they are not alike."""
    torch: Any = sys.modules["torch"]
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.numel() != other.numel():
        return None
    a, b = _parts(one).flatten(), _parts(other).flatten()
    finite = torch.isfinite(a) & torch.isfinite(b)
    return float((a - b).abs()[finite].max()) if bool(finite.any()) else 0.0


def same_in_float64(before: Any, after: Any, floor: float = 0.0) -> float:
    """The difference of two float64 results as a multiple of what rewriting a graph may change.

    ``floor`` is allowed in any case: what roundings come to where terms cancel (`noise_floor`).
    """
    torch: Any = sys.modules["torch"]
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        pairs = itertools.zip_longest(before, after)
        return max((same_in_float64(one, other, floor) for one, other in pairs), default=0.0)
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return 0.0 if before is after or before == after else math.inf
    if before.shape != after.shape:
        return math.inf
    if before.numel() == 0:
        return 0.0
    a, b = _parts(before), _parts(after)
    if not torch.equal(torch.isnan(a), torch.isnan(b)):
        return math.inf
    finite = torch.isfinite(a) & torch.isfinite(b)
    if not bool(finite.any()):
        return 0.0
    a, b = a[finite], b[finite]
    if not before.is_floating_point() and not before.is_complex():
        return float((a != b).double().mean() / 1e-3)
    allowed = PASS_RTOL * (a.abs() + a.square().mean().sqrt()) + floor
    error = (a - b).abs()
    return float(torch.where(error == 0, error, error / allowed).max())


NOISE = 1e-12
"""By how much of itself each float64 value is disturbed to find out what roundings can come to, which are 1e-16 of it."""


def noise_floor(value: Any, disturbed: Any) -> float:
    """What a float64 result may be off by where its terms cancel: the gradient of a key's bias is 0 in exact numbers."""
    off = farthest(value, disturbed)
    return 64 * off if off is not None else 0.0


def _parts(tensor: Any) -> Any:
    torch: Any = sys.modules["torch"]
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.to(torch.float64)


def _patterns(c: Any, e: Any, r: Any, dtype: str) -> Measure | None:
    """Unexpected NaN and infinities, and missing ones."""
    torch: Any = sys.modules["torch"]
    nan = torch.isnan
    too_large = r.abs() > torch.finfo(getattr(torch, dtype)).max * 0.99 if not dtype.startswith("complex") else r != r
    for bad, why in (
        (nan(c) & ~nan(e) & ~nan(r), "NaN where eager mode and float64 have a number"),
        (~nan(c) & nan(e) & nan(r), "a number where eager mode and float64 have NaN"),
        (torch.isinf(c) & torch.isfinite(e) & torch.isfinite(r) & ~too_large,
         "infinite where eager mode and float64 are finite"),
        (torch.isfinite(c) & torch.isinf(e) & torch.isinf(r), "finite where eager mode and float64 are infinite"),
    ):  # fmt: skip
        if bool(bad.any()):
            count, worst = int(bad.sum()), int(bad.flatten().to(torch.uint8).argmax())
            words = f"{why}, in {count} of {bad.numel()} elements"
            return Measure(math.inf, math.inf, 0.0, 0.0, 0.0, _index(worst, bad.shape), _numbers(worst, c, e, r), words)
    return None


def _whole_numbers(compiled: Any, eager: Any, wide: Any, noisy: Any, exact: bool) -> Measure:
    torch: Any = sys.modules["torch"]
    others = [int((each != wide).sum()) for each in (compiled, eager, noisy)]
    wrong = compiled != eager
    allowed = 0.0 if exact else SLACK * max(others[1:]) + max(1.0, eager.numel() / 1000)
    count = int(wrong.sum()) if exact else min(others[0], int(wrong.sum()))
    ratio = 0.0 if count == 0 else math.inf if allowed == 0 else count / allowed
    worst = int(wrong.flatten().to(torch.uint8).argmax())
    return Measure(
        ratio, float(count), float(others[1]), float(others[2]), allowed, _index(worst, wrong.shape),
        _numbers(worst, compiled, eager, wide), f"{count} of {eager.numel()} elements differ" if count else "",
    )  # fmt: skip


def _numbers(worst: int, *tensors: Any) -> tuple[float, float, float]:
    one, two, three = (float(tensor.flatten()[worst]) for tensor in tensors)
    return one, two, three


def _index(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    found = []
    for size in reversed(shape):
        found.append(flat % size)
        flat //= size
    return tuple(reversed(found))
