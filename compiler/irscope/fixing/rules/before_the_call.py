"""What compiled code does with plain Python alone, such as drawing a number: done by a plain function around it, before it.

The function keeps its name.  It is not compiled, does this, and calls the rest, which is compiled as a whole; so no
operation on a tensor leaves the graph, but for those of a condition.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

from irscope.fixing.conditions import is_tensor
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.rules.clocks import is_clock
from irscope.fixing.source import Source, bound_names, changed_names
from irscope.fixing.splitting import can_be_split, parameters, with_before
from irscope.fixing.syntax import is_docstring
from irscope.protocol import Finding
from irscope.usercode.bindings import dotted

_TITLE = "Do it before the compiled code, and pass on what comes of it"
_CAVEAT = "Compiled code is made for each truth value, text or integer that is passed on."
_DECIDE = "Decide before the compiled code, and pass on the answer"
_DECIDE_CAVEAT = "The condition runs as plain Python, which waits for its value; compiled code is made for each answer."


@dataclass
class _Moved:
    """What is done before: its lines, the names that the rest needs of it, and what changes in the rest."""

    arguments: set[str]
    given: set[str]
    """The arguments, while all statements before were moved: they are then what the caller gave."""
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    changes: dict[ast.AST, str | None] = field(default_factory=dict)
    runs_operations: bool = False
    """Whether a condition on the values of a tensor is among them."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node, function = source.at(finding.range), source.function_at(finding.range)
    if node is None or not can_be_split(source, function):
        return
    if is_clock(source, node.value if isinstance(node, ast.Expr) else node):
        return  # what it is to measure would not be between its readings any more
    arguments = set(parameters(function))
    moved, local = _Moved(arguments, arguments), arguments | changed_names(*function.body)
    inside = list(source.around(node))
    is_past = False
    for statement in function.body:
        count = len(moved.lines)
        _move(source, statement, local, moved)
        if is_past and len(moved.lines) == count:
            break
        if statement not in moved.changes and not is_docstring(statement):
            moved.given = set()
        is_past = is_past or statement in inside
    if any(outer in moved.changes for outer in inside):
        title, caveat = (_DECIDE, _DECIDE_CAVEAT) if moved.runs_operations else (_TITLE, _CAVEAT)
        passed = {name: name for name in moved.names}
        text = with_before(source, function, moved.lines, passed, moved.changes)
        yield Proposal(title, caveat, text, last=True)


def _move(source: Source, statement: ast.stmt, local: set[str], moved: _Moved) -> None:
    """A statement, or the condition of an ``if``, that reads only what the function was given."""
    unknown = local - set(moved.names) - moved.given
    if isinstance(statement, ast.If):
        name = source.fresh("decided")
        decision = _decision(source, statement.test, unknown)
        if decision and name not in moved.names:
            moved.lines.append(f"{name} = {decision}")
            moved.names.append(name)
            moved.runs_operations |= is_tensor(source, statement.test)
            moved.changes[statement.test] = name
    elif isinstance(statement, (ast.Assign, ast.Expr)) and source.owns_lines(statement):
        if not source.all(ast.Call, statement.value) or not _is_plain(source, statement.value, unknown):
            return
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
            is_argument = isinstance(target, ast.Name) and target.id in moved.arguments  # the rest has it by its name
            if len(statement.targets) > 1 or not isinstance(target, ast.Name) or is_argument > bool(moved.given):
                return
            moved.names += [] if is_argument or target.id in moved.names else [target.id]
        moved.lines.append(source.code_with_comments(statement))
        moved.changes[statement] = None


def _decision(source: Source, test: ast.expr, unknown: set[str]) -> str:
    """A condition as plain Python decides it; empty if it reads what is not known before the call.

    One on the value of a tensor is made a truth value, on which the compiled code can then branch.
    """
    calls = source.all(ast.Call, test)
    if is_tensor(source, test):
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        return f"bool({source.code(test)})" if names <= set(dir(builtins)) and not _read(test) & unknown else ""
    return source.code(test) if calls and _is_plain(source, test, unknown) else ""


def _is_plain(source: Source, value: ast.expr, unknown: set[str]) -> bool:
    """Whether an expression reads no unknown names, and calls nothing of torch or of the file's functions."""
    functions = [call.func for call in source.all(ast.Call, value)]
    heads = {source.full_name(function).partition(".")[0] for function in functions} - {""}
    of_values = any(isinstance(function, ast.Attribute) and not dotted(function) for function in functions)
    modules = {name.partition(".")[0] for name in (*source.imports, *source.imports.values())}
    assigned = {name for node in source.tree.body if isinstance(node, ast.Assign) for name in bound_names(node)}
    named = "torch" not in heads and heads <= modules | set(dir(builtins)) | assigned
    return named and not of_values and not _read(value) & unknown


def _read(value: ast.expr) -> set[str]:
    """The names in an expression, without those of the arguments of functions in it."""
    return {name.id for name in ast.walk(value) if isinstance(name, ast.Name)} - changed_names(value)


_EXAMPLES = (
    Example.script("""
          import uuid
          names = []

          @torch.compile(backend="eager")
        + def f_after(x):
        +     return x + 1
        +
        +
        + @torch.compiler.disable(recursive=False)
          def f(x):
              names.append(uuid.uuid4().hex)
        -     return x + 1
        +     return f_after(x)

          f(torch.ones(4))
    """),
    Example.script("""
          @torch.compile(backend="eager")
        - def f(x):
        -     if x.sum() > 0:
        + def f_after(x, decided):
        +     if decided:
                  x = x + 1
              return x * 2

        +
        + @torch.compiler.disable(recursive=False)
        + def f(x):
        +     decided = bool(x.sum() > 0)
        +     return f_after(x, decided)
        +
          f(torch.ones(4))
    """),
)
RULE = Rule("before the call", ("graph-break",), _propose, examples=_EXAMPLES)
