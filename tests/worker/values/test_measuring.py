"""The criterion of a divergence on numbers that are known."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from irscope.runner.compared import differences
from irscope.runner.tensors import largest_difference
from irscope.values.check.measuring import Measure, measure, same_in_float64


def measured(compiled: Any, eager: Any, wide: Any, rounding: float = 0.0, exact: bool = False) -> Measure:
    """Of lists of numbers in float32; ``rounding`` is how far the disturbed result is off everywhere."""
    c, e = (torch.tensor(each, dtype=torch.float32) for each in (compiled, eager))
    w = torch.tensor(wide, dtype=torch.float64)
    found = measure(c, e, w, w + rounding, exact)
    assert found is not None
    return found


def test_the_last_bits_may_differ() -> None:
    assert not measured([1.0000001, 2.0], [1.0, 2.0], [1.0, 2.0]).differs


def test_more_than_the_last_bits_differs() -> None:
    found = measured([1.0, 2.001], [1.0, 2.0], [1.0, 2.0])
    assert found.differs
    assert found.index == (1,)
    assert found.numbers == pytest.approx((2.001, 2.0, 2.0))
    assert found.compiled == pytest.approx(0.001, rel=1e-3)


def test_what_eager_mode_is_off_by_is_allowed_some_times_over() -> None:
    assert not measured([1.005], [1.001], [1.0]).differs
    assert measured([1.02], [1.001], [1.0]).differs


def test_what_rounding_does_is_allowed_where_eager_mode_was_exact() -> None:
    """A sum that cancels."""
    assert measured([3e-4], [0.0], [0.0]).differs
    assert not measured([3e-4], [0.0], [0.0], rounding=1e-4).differs


def test_an_element_near_zero_is_as_exact_as_its_neighbours() -> None:
    assert not measured([100.0, 5e-4], [100.0, 0.0], [100.0, 0.0]).differs
    assert measured([0.01, 5e-4], [0.01, 0.0], [0.01, 0.0]).differs


@pytest.mark.parametrize(
    ("compiled", "eager", "wide", "differs"),
    [
        (math.nan, 1.0, 1.0, True),
        (math.nan, math.nan, math.nan, False),
        (1.0, math.nan, math.nan, True),
        (math.inf, 1.0, 1.0, True),
        (math.inf, math.inf, 1e39, False),  # beyond what float32 holds
        (1.0, math.inf, math.inf, True),
        (math.nan, math.nan, 1.0, False),  # eager mode does the same
    ],
)
def test_nan_and_infinities_are_patterns(compiled: float, eager: float, wide: float, differs: bool) -> None:
    assert measured([0.5, compiled], [0.5, eager], [0.5, wide]).differs is differs


def test_whole_numbers_are_equal_unless_a_comparison_stood_at_a_tie() -> None:
    one, other = torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])
    exact = measure(other, one, one, one, exact=True)
    tied = measure(other, one, one, one, exact=False)
    assert exact is not None and exact.differs
    assert tied is not None and not tied.differs


def test_other_shapes_are_not_compared() -> None:
    assert measure(torch.ones(3), torch.ones(4), torch.ones(4).double(), torch.ones(4).double()) is None


def test_passes_may_move_a_float64_result_by_little() -> None:
    before = torch.randn(100, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert same_in_float64(before, before * (1 + 1e-15)) < 1
    assert same_in_float64(before, before * 1.001) > 1
    assert same_in_float64(before, torch.where(before > 2, math.nan, before)) == math.inf


def test_buffers_that_a_program_leaves_alone_are_not_written() -> None:
    """A write would count as a change, and what was exported does not run in place of a module that has changed."""

    class Module(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("same", torch.ones(2))
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x * self.same

    module = Module()
    same, count = dict(module.named_buffers()).values()
    before = same._version
    found, why = largest_difference(module, module, (torch.ones(2),), {})
    assert (found, why) == ({"absolute": 0.0, "relative": 0.0, "dtype": "float32"}, "")
    assert same._version == before
    assert count.item() == 0


@pytest.mark.parametrize(
    ("noise", "dtype", "differs"),
    [(4e-10, torch.float32, False), (4e-5, torch.float32, True), (4e-4, torch.bfloat16, True)],
)
def test_a_gradient_that_is_zero_may_be_what_rounding_leaves(noise: float, dtype: torch.dtype, differs: bool) -> None:
    """As that of the bias of an attention's keys: other gradients of the same call say how large rounding is."""
    weight = torch.full((4,), 0.02, dtype=dtype)
    before = {
        "f#0: the run's inputs": {
            "gradient of state bias": torch.tensor([2e-10] * 4, dtype=dtype),
            "gradient of state w": weight,
        }
    }
    now = {
        "f#0: the run's inputs": {
            "gradient of state bias": torch.tensor([noise] * 4, dtype=dtype),
            "gradient of state w": weight,
        }
    }
    assert bool(differences(before, now)) is differs
