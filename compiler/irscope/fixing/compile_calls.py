"""Where a text compiles: calls of ``torch.compile``, and decorators."""

from __future__ import annotations

import ast

from irscope.fixing.source import Source

MARK_CAVEAT = "It raises where the code fixes such a size."
DYNAMIC_CAVEAT = "All sizes are then dynamic from the first compile. Code for fixed sizes can be faster."


def compiling(source: Source) -> list[ast.expr]:
    """The calls of ``torch.compile``, the bare decorators of that name, and calls of a module's ``compile``, in order."""
    decorators = [decorator for node in source.nodes for decorator in getattr(node, "decorator_list", ())]
    bare = [decorator for decorator in decorators if source.full_name(decorator) == "torch.compile"]
    calls = [call for call in source.all(ast.Call) if _compiles(source, call)]
    return sorted([*bare, *calls], key=source.span)


def _compiles(source: Source, call: ast.Call) -> bool:
    if source.full_name(call.func) == "torch.compile":
        return True
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="compile"), args=[]):
            return name not in source.imports
    return False
