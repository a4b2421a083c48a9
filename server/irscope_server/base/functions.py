"""The functions of a Python text, and which of them PyTorch's names for compiled code mean."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope_server.base.texts import from_bytes
from irscope_server.base.trees import tree_of

_RESUMED = re.compile(r"^(?:torch_dynamo_)?resume_in_(?P<name>.+)_at_(?P<line>\d+)$")

_IMPORTS_TORCH = re.compile(r"^[ \t]*(?:import|from)[ \t][^#\n]*\btorch\b", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """A parameter in the head of a function; its line is 1-based, columns are indices into the line."""

    name: str
    line: int
    column: int
    end_column: int


@dataclass(frozen=True)
class Function:
    """A function of a text; lines are 1-based, columns indices into the line as a Python string."""

    name: str
    """As in its code object: ``<lambda>`` for a lambda."""
    title: str
    """With the classes and functions around it: ``Block.forward``."""
    first_line: int
    """The line of its first decorator, or of its ``def``."""
    line: int
    """The line of its ``def``."""
    end_line: int
    decorated_to_compile: bool
    arguments: ast.arguments

    def parameter_at(self, line: int, column: int, lines: Sequence[str]) -> Parameter | None:
        """The parameter at a place (1-based line, string column)."""
        given = self.arguments
        star = [one for one in (given.vararg, given.kwarg) if one is not None]
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, *star):
            if argument.lineno != line:
                continue
            start = from_bytes(lines[line - 1], argument.col_offset)
            if start <= column <= start + len(argument.arg):
                return Parameter(argument.arg, line, start, start + len(argument.arg))
        return None


@dataclass(frozen=True)
class Outline:
    """What a text shows without being run."""

    functions: tuple[Function, ...]
    compile_calls: tuple[int, ...]
    """Lines (1-based) that call ``torch.compile`` other than as a decorator, or ``.compile()`` on something."""
    compiled_names: frozenset[str]
    """Names handed to ``torch.compile(name)``."""

    def marked(self) -> tuple[Function, ...]:
        """The functions that the text itself says are compiled."""
        return tuple(f for f in self.functions if f.decorated_to_compile or f.title in self.compiled_names)


def uses_compile(text: str) -> bool:
    """Whether a script is worth a run: it mentions both ``torch`` and ``compile``.

    A cheap look at the letters and on purpose too generous: ``import torch as t; t.compile``, ``model.compile()``
    and ``getattr(torch, "compile")`` all count.  A needless run does no harm; a run left out hides a finding.
    """
    return "torch" in text and "compile" in text


def uses_torch(text: str) -> bool:
    """Whether a worker is worth its memory: a run may be asked for, since the script imports torch or compiles."""
    return uses_compile(text) or _IMPORTS_TORCH.search(text) is not None


@functools.lru_cache(maxsize=32)
def outline_of(text: str) -> Outline | None:
    """The functions of a text, or None if it has a syntax error."""
    tree = tree_of(text)
    if tree is None:
        return None
    try:
        functions = tuple(_functions(tree, ""))
    except RecursionError:
        return None
    nodes = list(ast.walk(tree))
    decorators = {id(d) for node in nodes if isinstance(node, _DEFINITIONS) for d in node.decorator_list}
    calls = sorted(
        (
            node
            for node in nodes
            if isinstance(node, ast.Call) and id(node) not in decorators and _is_compile(node.func)
        ),
        key=lambda call: call.lineno,
    )
    return Outline(
        functions,
        tuple(call.lineno for call in calls),
        frozenset(call.args[0].id for call in calls if call.args and isinstance(call.args[0], ast.Name)),
    )


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _functions(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(
                child.name,
                prefix + child.name,
                min([child.lineno, *(d.lineno for d in child.decorator_list)]),
                child.lineno,
                child.end_lineno or child.lineno,
                any(
                    _is_compile(d.func if isinstance(d, ast.Call) else d) or _is_partial(d)
                    for d in child.decorator_list
                ),
                child.args,
            )
            inner = f"{prefix}{child.name}."
        elif isinstance(child, ast.Lambda):
            end = child.end_lineno or child.lineno
            yield Function("<lambda>", f"{prefix}<lambda>", child.lineno, child.lineno, end, False, child.args)
        elif isinstance(child, ast.ClassDef):
            inner = f"{prefix}{child.name}."
        yield from _functions(child, inner)


def _is_compile(node: ast.expr) -> bool:
    """``torch.compile``, ``t.compile``, ``model.compile`` — but not ``re.compile``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "compile"
        and not (isinstance(node.value, ast.Name) and node.value.id in ("re", "regex"))
    )


def _is_partial(node: ast.expr) -> bool:
    """``@functools.partial(torch.compile, …)``."""
    return isinstance(node, ast.Call) and bool(node.args) and _is_compile(node.args[0])


def function_of(outline: Outline, name: str, line: int) -> Function | None:
    """The function that a compile's name and first line mean.

    A resume function (``torch_dynamo_resume_in_f_at_12``) belongs to the ``f`` around line 12.  Failing an exact
    match, the only function of that name, then the innermost one around the line.
    """
    resumed = False
    while match := _RESUMED.match(name):
        name, line, resumed = match["name"], int(match["line"]), True
    name = {"lambda": "<lambda>", "_lambda_": "<lambda>"}.get(name, name)
    named = [f for f in outline.functions if f.name == name]
    around = [f for f in outline.functions if f.first_line <= line <= f.end_line]
    if not resumed:
        for function in named:
            if line in (function.first_line, function.line):
                return function
    inside = [f for f in around if f.name == name]
    if inside:
        return max(inside, key=lambda f: f.first_line)
    if len(named) == 1:
        return named[0]
    return max(around, key=lambda f: f.first_line, default=None) if resumed else None
