"""Where the user's text has the ``torch.compile`` of a function that was compiled again, and the change of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irscope.fixing.compile_calls import DYNAMIC_CAVEAT
from irscope.fixing.edits import argument
from irscope.fixing.source import source_of_file
from irscope.protocol import Fix, FixMethod, Range
from irscope.usercode.source import node_at_range, parents, parse, range_of_node

if TYPE_CHECKING:
    from irscope.findings.recompiling.facts import Facts

_COMPILE = ("torch.compile", "torch._dynamo.optimize")


def dynamic(facts: Facts, *settings: str) -> Fix | None:
    """`dynamic_fix` for a recompilation."""
    place = facts.calls[-1].place if facts.calls else None
    call = (place.file, place.range) if place is not None else None
    return dynamic_fix(call, facts.file, facts.function, settings)


def dynamic_fix(
    call: tuple[str, Range] | None, file: str, function: ast.AST | None, settings: Sequence[str] = ()
) -> Fix | None:
    """Makes every size dynamic; None if it is not certain where the function is compiled.

    Args:
        call: The file and place of the user's call of the compiled function.
        file, function: The function that was compiled, if its text is in this file of the user's.
        settings: Settings of PyTorch that it needs, as code.
    """
    function = function if function in parents(file) else None  # what is guarded can be read in another file
    found = {(file, range_of_node(file, node)): node for node in _decorators(function)}
    if not found and call is not None:
        called = node_at_range(*call)
        nodes = _made(call[0], called.func) if isinstance(called, ast.Call) else ()
        found = {(call[0], range_of_node(call[0], node)): node for node in nodes}
    if len(found) != 1:
        return None
    ((where, _), node) = found.popitem()
    compiling = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) else node
    return _made_dynamic(where, compiling, settings)


def _made_dynamic(file: str, compiling: ast.expr, settings: Sequence[str]) -> Fix | None:
    """The fix of one place that compiles; None if what it is given is not known."""
    source, method = source_of_file(file), FixMethod.DYNAMIC_SIZES
    if source is None:
        return None
    try:
        set_up = [source.setting("\n".join(settings), "torch")] if settings else []
        edits = source.edits({}, [*set_up, argument(source, compiling, "dynamic", "True")])
    except ValueError:
        return None
    if not settings:
        return Fix(method.title, DYNAMIC_CAVEAT, edits, file, method)
    names = " and ".join(f"`{setting.partition(' = ')[0].rpartition('.')[2]}`" for setting in settings)
    return Fix(f"{method.title}, with {names}", DYNAMIC_CAVEAT, edits, file)


def _decorators(function: ast.AST | None) -> Iterator[ast.expr]:
    for decorator in getattr(function, "decorator_list", ()):
        if _is_compile(decorator.func if isinstance(decorator, ast.Call) else decorator):
            yield decorator


def _made(file: str, callee: ast.expr) -> Iterator[ast.expr]:
    """What compiles the thing that is called: in its assignment, its decorator, its own expression, or in place."""
    if isinstance(callee, ast.Call) and _is_compile(callee.func):
        yield callee
        return
    name = ast.unparse(callee)
    tree = parse(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name.rpartition(".")[2]:
            yield from _decorators(node)
        elif isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            if isinstance(node.value, ast.Call) and _is_compile(_called(node.value)):
                yield node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "compile":
            if ast.unparse(node.func.value) == name:
                yield node


def _called(call: ast.Call) -> ast.expr:
    """What makes a function compiled: of ``torch._dynamo.optimize("eager")(f)`` it is the inner call's function."""
    return call.func.func if isinstance(call.func, ast.Call) else call.func


def _is_compile(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) in _COMPILE
