"""The text of a kernel as something that may be executed: what no kernel has is refused."""

from __future__ import annotations

import ast

import pytest
from irscope.values.kernel.kernel_text import NotAKernel, kernel_tree, names_of_statement

HEAD = "import triton\nimport triton.language as tl\n\n@triton_heuristics.pointwise(size_hints={'x': 64})\n@triton.jit\ndef kernel(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):\n"  # fmt: skip


def test_a_kernel_keeps_its_lines_without_imports_and_decorators() -> None:
    tree = kernel_tree(
        HEAD + "    x = tl.load(in_ptr0 + tl.arange(0, XBLOCK))\n    tl.store(out_ptr0, x.to(tl.float32))\n"
    )
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef) and (function.name, function.decorator_list) == ("kernel", [])
    assert [each.lineno for each in function.body] == [7, 8]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("import os", "Import"),
        ("x = (lambda: 1)()", "Lambda"),
        ("x = [y for y in range(3)]", "ListComp"),
        ("x = __import__", "__import__"),
        ("x = tl.core", "tl.core"),
        ("x = tl.core.os.system", ".system"),
        ("x = in_ptr0.handle", ".handle"),
        ("x = tl._semantic", "tl._semantic"),
        ("x = xnumel.__class__", ".__class__"),
        ("x = triton.compile", "triton.compile"),
        ("with open as f:\n        pass", "With"),
    ],
)
def test_what_no_kernel_has_is_named(statement: str, names: str) -> None:
    with pytest.raises(NotAKernel, match="Line 7 of the kernel") as error:
        kernel_tree(HEAD + f"    {statement}\n")
    assert names in str(error.value)


@pytest.mark.parametrize(
    ("statement", "written", "read"),
    [
        ("a, b = f(c)", ("a", "b"), ("f", "c")),
        ("a += b", ("a",), ("b", "a")),
        ("for i in range(n):\n    a = b", ("i",), ("range", "n")),
        ("if a < b:\n    c = d", (), ("a", "b")),
    ],
)
def test_the_names_of_a_statement(statement: str, written: tuple[str, ...], read: tuple[str, ...]) -> None:
    [node] = ast.parse(statement).body
    assert names_of_statement(node) == (written, read)
