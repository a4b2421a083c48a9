"""Whether a module does work when it is run, or only contains definitions: a script, or a library module.

Decided from the syntax tree alone.  A library module that is taken for a script costs a run that finds nothing; a
script that is taken for a library module would never run.  So only what is known to be mere preparation (definitions,
constants, settings, registrations, a wrapped function) makes a library module, and whatever else is called counts as
work.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
from collections.abc import Iterator

from irscope_server.base.trees import tree_of

_WORK = frozenset(
    [
        "backward",
        "benchmark",
        "cli",
        "evaluate",
        "execute",
        "exit",
        "explain",
        "export",
        "Fire",
        "fit",
        "forward",
        "generate",
        "invoke",
        "launch",
        "main",
        "run",
        "run_module",
        "run_path",
        "serve",
        "start",
        "step",
        "timeit",
        "train_loop",
    ]
)
"""Methods and functions that do work, of any class or module."""

_PREPARES = re.compile(
    r"_*(?:add|allow|append|assume|basic|capture|declare|define|disable|enable|ensure|extend|filter|freeze|impl|init"
    r"|insert|install|invalidate|load_dotenv|manual_seed|mark|patch|register|remove|requires_grad|reset|resetwarnings"
    r"|seed|set|setattr|setdefault|setup|simplefilter|substitute|update|use|validate|warn|wrap|filterwarnings"
    r"|basicConfig)(?=_|[A-Z]|$)"
)
"""Names of calls that prepare: ``set_float32_matmul_precision``, ``register_op``, ``add_argument``, ``setLevel``."""

_CHANGES = frozenset(
    [
        "clear",
        "compile",
        "cpu",
        "cuda",
        "debug",
        "double",
        "error",
        "eval",
        "float",
        "half",
        "info",
        "pop",
        "share_memory",
        "to",
        "train",
    ]
)
"""Methods that change what they belong to and do no work with it."""

_PLAIN = frozenset({"torch", "numpy", "np", "math", "sys", "os", *sys.stdlib_module_names})
"""Modules whose functions make constants when their result is assigned: ``torch.arange(8)``, ``re.compile(…)``."""

_RUNS = frozenset({"print", "exec", "eval", "input", "exit", "quit", "breakpoint"})
"""Builtins that do work."""


@functools.lru_cache(maxsize=64)
def does_work(text: str) -> bool:
    """Whether running this text as a script does more than define things; true if it cannot be parsed.

    With a ``__main__`` guard it does.  Without one, where its top level calls what it or another module defines, other
    than to prepare.
    """
    tree = tree_of(text)
    if tree is None:
        return True
    try:
        names = _names(tree)
        return any(_works(statement, names) for statement in _statements(tree.body))
    except RecursionError:
        return True


class _Names:
    """What the names of a module's top level stand for."""

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.classes: set[str] = set()
        self.imported: dict[str, str] = {}
        """Name to the top-level package that it comes from."""
        self.values: set[str] = set()


def _names(tree: ast.Module) -> _Names:
    names = _Names()
    for statement in _statements(tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.functions.add(statement.name)
        elif isinstance(statement, ast.ClassDef):
            names.classes.add(statement.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                top = alias.name.partition(".")[0]
                names.imported[alias.asname or top] = top
        elif isinstance(statement, ast.ImportFrom):
            top = "" if statement.level else (statement.module or "").partition(".")[0]
            for alias in statement.names:
                names.imported[alias.asname or alias.name] = top
        else:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.values.add(node.id)
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module's top level, those under ``if``, ``try``, ``with`` and loops among them."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from _statements(statement.orelse)
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, part, []))
        for part in ("handlers", "cases"):
            for inner in getattr(statement, part, []):
                yield from _statements(inner.body)


def _works(statement: ast.stmt, names: _Names) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return False
    if isinstance(statement, ast.If) and _is_main_guard(statement.test):
        return True
    alone = isinstance(statement, ast.Expr)
    return any(_is_work(call, names, alone=alone) for own in _expressions(statement) for call in _calls(own))


def _is_main_guard(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test)) and any(
        isinstance(node, ast.Constant) and node.value == "__main__" for node in ast.walk(test)
    )


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of the statements in it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)


def _is_work(call: ast.Call, names: _Names, *, alone: bool) -> bool:
    """Whether a call does work.

    Args:
        alone: It is in its own statement, so it is called for what it does.
    """
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if call.args and all(_is_definition(argument, names) for argument in call.args):
        return _last(call.func) in _WORK  # `torch.compile(mode=…)(f)` wraps; `asyncio.run(main)` runs
    if isinstance(call.func, ast.Name):
        return _is_work_by_name(call.func.id, arguments, names, alone=alone)
    if isinstance(call.func, ast.Attribute):
        return _is_work_of_method(call.func, arguments, names, alone=alone)
    return not isinstance(call.func, ast.Subscript)  # the result of a call is called: `torch.compile(f)(x)`


def _is_work_by_name(name: str, arguments: list[ast.expr], names: _Names, *, alone: bool) -> bool:
    if name in names.classes or name[:1].isupper():
        return False
    if name in names.functions or name in names.values:
        return not (alone and _prepares(name) and not _has_data("", arguments))
    if name in names.imported:
        return not _prepares(name) and (alone or name in _WORK or _has_data(names.imported[name], arguments))
    return name in _RUNS or not hasattr(builtins, name)


def _is_work_of_method(function: ast.Attribute, arguments: list[ast.expr], names: _Names, *, alone: bool) -> bool:
    if function.attr in _WORK:
        return True
    root = _root(function)
    if root in names.imported and root not in names.values:
        return not _prepares(function.attr) and (alone or _has_data(names.imported[root], arguments))
    return alone and not _prepares(function.attr) and function.attr not in _CHANGES


def _has_data(package: str, arguments: list[ast.expr]) -> bool:
    """Whether another module's function gets something computed: ``step(torch.ones(4))``, not ``get_logger(name)``."""
    if package in _PLAIN:
        return False
    return any(
        isinstance(node, ast.Call) and _root(node.func) in ("torch", "np", "numpy")
        for argument in arguments
        for node in ast.walk(argument)
    )


def _is_definition(node: ast.expr, names: _Names) -> bool:
    return isinstance(node, ast.Lambda) or (
        isinstance(node, ast.Name) and (node.id in names.functions or node.id in names.classes)
    )


def _prepares(name: str) -> bool:
    return _PREPARES.match(name) is not None


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
