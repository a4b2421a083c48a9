"""Where a program names CUDA as its device, in the texts of its source: ``"cuda"``, ``"cuda:0"``, ``f"cuda:{rank}"``."""

from __future__ import annotations

import ast
import re

_CUDA = re.compile(r"cuda(:\d*)?")


def names_cuda(text: object) -> bool:
    """Whether a text is the name of a CUDA device, or of all of them."""
    return isinstance(text, str) and _CUDA.fullmatch(text) is not None


class OnCpu(ast.NodeTransformer):
    """Has a program name the CPU where it names CUDA.  What else it says keeps its place in the file.

    Attributes:
        lines: The 1-based lines that name CUDA, in the order in which they were found: those that were changed, and
            calls of ``x.cuda()``, which are not.
    """

    def __init__(self) -> None:
        self.lines: list[int] = []

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A device as a whole text."""
        return self._cpu(node) if names_cuda(node.value) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call that moves something to the device."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            self.lines.append(node.lineno)
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """A device with a number that is known when it runs."""
        first = node.values[0] if node.values else None
        if len(node.values) == 2 and isinstance(first, ast.Constant) and first.value == "cuda:":
            return self._cpu(node)
        return node

    def _cpu(self, node: ast.expr) -> ast.AST:
        self.lines.append(node.lineno)
        return ast.copy_location(ast.Constant("cpu"), node)
