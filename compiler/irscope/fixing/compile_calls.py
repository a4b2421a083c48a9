"""Where a text compiles: calls of ``torch.compile``, and decorators."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from irscope.fixing.changes import SyntaxChange
from irscope.fixing.source import Source


def compiling(source: Source) -> list[ast.expr]:
    """The calls of ``torch.compile``, the bare decorators of that name, and calls of a module's ``compile``, in order."""
    bare = [
        decorator
        for node in source.nodes
        for decorator in getattr(node, "decorator_list", ())
        if source.full_name(decorator) == "torch.compile"
    ]
    calls = [call for call in source.all(ast.Call) if _compiles(source, call)]
    return sorted([*bare, *calls], key=source.span)


def _compiles(source: Source, call: ast.Call) -> bool:
    if source.full_name(call.func) == "torch.compile":
        return True
    function = call.func
    if (
        not isinstance(function, ast.Attribute)
        or function.attr != "compile"
        or not isinstance(function.value, ast.Name)
    ):
        return False
    return function.value.id not in source.imports and not call.args


def with_dynamic(source: Source, compiled: Sequence[ast.expr], value: str) -> list[SyntaxChange]:
    """Makes calls and decorators of ``torch.compile`` pass this value of ``dynamic``."""
    return [source.argument(call, "dynamic", value) for call in compiled]
