"""A Triton kernel that a script launches itself: the launch is checked, at the user's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.values.kernel.launched import kernels_alone
from support import run_cli_forked, triton_importable, write

SCRIPT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def twice(x):
    return x * 2


@triton.autotune([triton.Config({"BLOCK": 4})], key=[])
@triton.jit
def own_kernel(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n + 1
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, twice(x) * scale, mask=mask)  # @store


x = torch.ones(10)
y = torch.empty_like(x)
own_kernel[lambda meta: (triton.cdiv(9, meta["BLOCK"]),)](x, y, 9, 1.5)
assert y[9] == 3
import sys
if sys.argv[1:]:
    sys.exit()
own_kernel[(3,)](x, y, 10, 2)
"""


def test_a_file_without_all_but_its_kernels() -> None:
    rows = kernels_alone(SCRIPT).split("\n")
    assert [number for number, row in enumerate(rows, 1) if row] == [7, 8, *range(13, 18)]


@pytest.mark.parametrize(
    ("launch", "code", "told"),
    [
        (1, 0, "y_ptr (y_ptr): not compared: nothing in eager mode is its counterpart"),
        (2, 1, "program (2) writes outside of y_ptr: element 10"),
        (3, 2, "The script ended before launch 3 of own_kernel"),
    ],
)
def test_a_launch_is_checked(tmp_path: Path, launch: int, code: int, told: str) -> None:
    script = write(tmp_path, SCRIPT)
    with triton_importable():
        done = run_cli_forked(
            "kernel",
            "--script",
            str(script),
            "--kernel",
            "own_kernel",
            "--launch",
            str(launch),
            *(["--arguments", "short"] if launch == 3 else []),
        )
    text = done.stdout + done.stderr
    assert done.returncode == code and told in text, text
    if launch == 2:
        assert f"{script}:17" in text
