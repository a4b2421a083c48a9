"""Which lines of the user's file Inductor's copy of a kernel has."""

from __future__ import annotations

from irscope.ir.kernels import kernels_in
from irscope.ir.own_kernels import data_of, places_of, written_in
from irscope.protocol import Origin

SOURCE = """\
import triton
import triton.language as tl
from elsewhere import imported


@triton.jit
def helper(x):

    return x * 2  # twice


def between():
    pass


@triton.autotune(configs=[], key=["n"])
@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr)
    x = helper(x) + 0.0
    x = imported(x)
    tl.store(x_ptr, x)


class Holder:
    @triton.jit
    def kernel(other):
        tl.store(other, 0)
"""
CODE = """\
# AOT ID: ['0_inference']
# Original path: /home/user/model.py:16
kernel_0 = async_compile.triton('kernel', '''
import triton
@triton_heuristics.user_autotune(
    filename=__file__,
)
@triton.jit
def {name}(x_ptr, n):
    x = tl.load(x_ptr)
    x = helper(x) + 0.0
    x = imported(x)
{fused}    tl.store(x_ptr, x)

@triton.jit
def helper(x):

    return x * 2  # twice

@triton.jit
def imported(x):
    return x
''', device_str='cuda')
triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''
import triton
''', device_str='cuda')
"""


def copied(code: str) -> dict[str, str]:
    """Line of the copy → the user's line, both as texts."""
    assert written_in(code) == {"kernel_0": Origin("/home/user/model.py", 16)}
    text = next(kernel.text for kernel in kernels_in(code) if kernel.name == "kernel_0")
    places = places_of(data_of(text, written_in(code)["kernel_0"], SOURCE))
    assert {origin.file for origin in places.values()} == {"/home/user/model.py"}
    rows, lines = text.split("\n"), SOURCE.split("\n")
    return {rows[row - 1].strip(): lines[origin.line - 1].strip() for row, origin in places.items()}


def test_the_kernel_and_what_it_calls_from_its_file() -> None:
    found = copied(CODE.format(name="kernel", fused=""))
    body = [
        "def kernel(x_ptr, n):",
        "x = tl.load(x_ptr)",
        "x = helper(x) + 0.0",
        "x = imported(x)",
        "tl.store(x_ptr, x)",
    ]
    assert found == {line: line for line in [*body, "def helper(x):", "return x * 2  # twice"]}


def test_another_name_and_what_was_fused_into_it() -> None:
    found = copied(CODE.format(name="kernel_0", fused="    x = x + tl.load(more)\n"))
    assert "x = x + tl.load(more)" not in found
    assert found["tl.store(x_ptr, x)"] == "tl.store(x_ptr, x)"
    assert found["x = helper(x) + 0.0"] == "x = helper(x) + 0.0"


def test_a_file_that_is_another_now() -> None:
    code = CODE.format(name="kernel", fused="")
    text = next(kernel.text for kernel in kernels_in(code) if kernel.name == "kernel_0")
    assert data_of(text, Origin("/home/user/model.py", 16), "") is None
    assert data_of(text, Origin("/home/user/model.py", 16), "print(1)\n") is None
    assert places_of(None) == {} and places_of({"lines": []}) == {}
    assert written_in("triton_poi_fused_0 = async_compile.triton('t', '''''')") == {}
