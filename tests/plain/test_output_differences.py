"""How far the numbers of two programs are apart, whatever their type."""

from __future__ import annotations

import pytest
import torch
from irscope.runner.tensors import largest_difference


@pytest.mark.parametrize(
    ("dtype", "absolute", "relative"),
    [(torch.bool, 1.0, 1.0), (torch.int8, 128.0, 1.0), (torch.float16, 1.0, 0.5), (torch.complex64, 1.0, 0.5)],
)
def test_any_type_is_compared(dtype: torch.dtype, absolute: float, relative: float) -> None:
    first = {torch.bool: [True, False], torch.int8: [-128, 3]}.get(dtype, [2.0, 1.0])
    second = {torch.bool: [False, False], torch.int8: [0, 3]}.get(dtype, [1.0, 1.0])
    program, compiled = (lambda values=values: torch.tensor(values).to(dtype) for values in (first, second))
    found, why = largest_difference(program, compiled, (), {})
    assert (why, found) == (
        "", {"absolute": absolute, "relative": relative, "dtype": str(dtype).removeprefix("torch.")}
    )  # fmt: skip
