"""What a program that names CUDA keeps on the CPU all the same: ``torch.zeros(4, device="cpu")``, ``x.to("cpu")``, ``x.cpu()``.

Read in the text before the names of CUDA are replaced (`irscope.usercode.cuda_names`), after which all tensors look alike.
"""

from __future__ import annotations

import ast

FILES: dict[str, KeptOnCpu] = {}
"""By path the files of this process that name CUDA."""

MODULE = "<module>"
_HERE = "cpu"


class KeptOnCpu(ast.NodeVisitor):
    """Looks through a file.

    Attributes:
        lines: The 1-based lines of calls that name the CPU as their device.
        names: By the function and the name of a variable that has the result of such a call, and never anything else,
            the line.
    """

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.names: dict[tuple[str, str], int] = {}
        self._others: set[tuple[str, str]] = set()
        self._scope = MODULE

    def line_of(self, scope: str, name: str) -> int | None:
        """The line that gives a variable a tensor on the CPU; None if it may be on the GPU."""
        return None if (scope, name) in self._others else self.names.get((scope, name))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Its variables differ."""
        before, self._scope = self._scope, node.name
        self.generic_visit(node)
        self._scope = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        """A variable that has the result of a call."""
        is_kept = isinstance(node.value, ast.Call) and _names_cpu(node.value)
        for target in node.targets:
            if is_kept and isinstance(target, ast.Name):
                self.names[self._scope, target.id] = node.lineno
            else:
                self.visit(target)
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        """A variable that gets something else."""
        if not isinstance(node.ctx, ast.Load):
            self._others.add((self._scope, node.id))

    def visit_arg(self, node: ast.arg) -> None:
        """A parameter, which may be anything."""
        self._others.add((self._scope, node.arg))

    def visit_Call(self, node: ast.Call) -> None:
        """A call that may name the CPU."""
        if _names_cpu(node):
            self.lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        self.generic_visit(node)


def _names_cpu(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cpu" and not call.args:
        return True
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "device")]
    return any(isinstance(each, ast.Constant) and each.value == _HERE for each in given)
