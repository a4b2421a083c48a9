"""Random numbers near the ends of their range, as a proof draws them."""

from __future__ import annotations

import random

import numpy as np
import numpy.random  # NumPy imports it only when it is needed
import pytest
import torch
from irscope.runner.draws import LARGE, SMALL, pushed


@pytest.mark.parametrize(("how", "low", "high"), [(SMALL, 0.0, 0.00101), (LARGE, 0.99899, 1.0), ("", 0.0, 1.0)])
def test_numbers_are_near_the_end(how: str, low: float, high: float) -> None:
    with pushed(how):
        drawn = [
            random.random(),
            np.random.rand(),
            *np.random.random(3),
            *torch.rand(3),
            torch.rand_like(torch.ones(1)),
        ]
        scaled = [random.uniform(10, 20), np.random.uniform(10, 20), np.random.uniform(low=10, high=20)]
    assert all(low <= float(one) <= high for one in drawn)
    assert all(low <= (float(one) - 10) / 10 <= high for one in scaled)
    assert not how or not all(low <= random.random() <= high for _ in range(20)), "they are put back"


def test_as_many_are_drawn_as_without() -> None:
    after = []
    for how in ("", SMALL):
        torch.manual_seed(1)
        random.seed(1)
        with pushed(how):
            torch.rand(3), random.random(), random.uniform(1, 2)
        after.append((torch.rand(2).tolist(), random.random()))
    assert after[0] == after[1]
