"""What compiled code does with plain Python alone, such as drawing a number: done by a plain function around it, before it.

The function keeps its name.  It is not compiled, does this, and calls the rest, which is compiled as a whole; so no
operation on a tensor leaves the graph, but for those of a condition.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.conditions import is_tensor
from irscope_server.fixing.families.clocks import CLOCKS
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source
from irscope_server.fixing.splitting import can_be_split, with_before

_TITLE = "Do it before the compiled code, and pass on what comes of it"
_CAVEAT = "Compiled code is made for each truth value, text or integer that is passed on."
_DECIDE = "Decide before the compiled code, and pass on the answer"
_DECIDE_CAVEAT = "The condition runs as plain Python, which waits for its value; compiled code is made for each answer."


@dataclass
class _Moved:
    """What is done before: its lines, the names that the rest needs of it, and what changes in the rest."""

    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    changes: dict[cst.CSTNode, Change] = field(default_factory=dict)
    arguments: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    """The arguments, while all statements before were moved: they are then what the caller gave."""
    runs_operations: bool = False
    """Whether a condition on the values of a tensor is among them."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node, torch = source.at(finding.range), source.module_name("torch")
    function = source.function(node) if node is not None else None
    if node is None or torch is None or function is None or not can_be_split(source, function):
        return
    if isinstance(node, cst.Call) and source.full_name(node.func) in CLOCKS:
        return  # what it is to measure would not be between its readings any more
    assert isinstance(function.body, cst.IndentedBlock)
    body = [one for one in function.body.body if isinstance(one, cst.BaseStatement)]
    arguments = _bound(function.params)
    moved, local = _Moved(arguments=arguments, given=arguments), arguments | _bound(function.body)
    inside = list(source.around(node))
    is_past = False
    for statement in body:
        before = len(moved.lines)
        _move(source, statement, local, moved)
        if is_past and len(moved.lines) == before:
            break
        if statement not in moved.changes and not _is_docstring(statement):
            moved.given = frozenset()
        is_past = is_past or statement in inside
    if not moved.lines or not any(one in moved.changes for one in inside):
        return
    title, caveat = (_DECIDE, _DECIDE_CAVEAT) if moved.runs_operations else (_TITLE, _CAVEAT)
    passed = {name: name for name in moved.names}
    yield Proposal(title, caveat, with_before(source, function, torch, moved.lines, passed, moved.changes), last=True)


def _move(source: Source, statement: cst.BaseStatement, local: frozenset[str], moved: _Moved) -> None:
    """A statement, or the condition of an ``if``, that reads nothing of the function's own but what it was given."""
    known = local - set(moved.names) - moved.given
    if isinstance(statement, cst.If):
        name = source.fresh("decided")
        decided = _decision(source, statement.test, known)
        if decided and name not in moved.names:
            moved.lines.append(f"{name} = {decided}")
            moved.names.append(name)
            moved.runs_operations |= is_tensor(source, statement.test)
            moved.changes[statement.test] = cst.Name(name)
    elif isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        value = small.value if isinstance(small, (cst.Assign, cst.Expr)) else None
        if value is None or not m.findall(value, m.Call()) or not _is_plain(source, value, known):
            return
        if isinstance(small, cst.Assign):
            name = source.code(small.targets[0].target)
            is_argument = name in moved.arguments  # the rest has it already, under its name
            if not m.matches(small, m.Assign(targets=[m.AssignTarget(target=m.Name())])) or is_argument > bool(
                moved.given
            ):
                return
            moved.names += [] if is_argument or name in moved.names else [name]
        moved.lines.append(source.code(statement).strip("\n"))  # with its comments
        moved.changes[statement] = cst.RemoveFromParent()


def _decision(source: Source, test: cst.BaseExpression, local: frozenset[str]) -> str:
    """A condition as plain Python decides it; empty if it reads what is not known before the call.

    One on the value of a tensor is made a truth value, on which the compiled code can then branch.
    """
    read = _read(test)
    if is_tensor(source, test):
        own = [one for one in m.findall(test, m.Call(func=m.Name())) if not _is_builtin(one)]
        return "" if read & local or own else f"bool({source.code(test)})"
    return source.code(test) if m.findall(test, m.Call()) and _is_plain(source, test, local) else ""


def _is_builtin(call: cst.CSTNode) -> bool:
    return cst.ensure_type(cst.ensure_type(call, cst.Call).func, cst.Name).value in dir(builtins)


def _is_docstring(statement: cst.BaseStatement) -> bool:
    return m.matches(statement, m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString())]))


def _is_plain(source: Source, value: cst.BaseExpression, local: frozenset[str]) -> bool:
    """Whether an expression reads no local names, and calls nothing of torch or of the file's functions."""
    read = _read(value)
    calls = [source.full_name(one.func) for one in m.findall(value, m.Call()) if isinstance(one, cst.Call)]
    heads = {name.partition(".")[0] for name in calls}
    imported = heads - {"torch", ""} <= _modules(source) | set(dir(builtins)) | _top_level(source)
    return not read & local and "torch" not in heads and imported


def _read(value: cst.BaseExpression) -> set[str]:
    """The names in an expression, without those of the arguments of functions in it."""
    names = {one.value for one in m.findall(value, m.Name()) if isinstance(one, cst.Name)}
    return names - _bound(value)


def _modules(source: Source) -> set[str]:
    return set(source.imported_names) | {
        source.full_name(cst.Name(one)).partition(".")[0] for one in source.imported_names
    }


def _top_level(source: Source) -> set[str]:
    """The names that the module assigns: ``names.append(…)``."""
    lines = [one for one in source.module.body if isinstance(one, cst.SimpleStatementLine)]
    found = [target for one in lines for target in m.findall(one, m.AssignTarget(target=m.Name()))]
    return {source.code(cst.ensure_type(one, cst.AssignTarget).target) for one in found}


def _bound(node: cst.CSTNode) -> frozenset[str]:
    """Names of parameters, or that statements assign."""
    found = m.findall(
        node, m.Param() | m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.AsName() | m.NamedExpr()
    )
    places = [one.name if isinstance(one, (cst.Param, cst.AsName)) else one.target for one in found]  # type: ignore[attr-defined]
    return frozenset(name.value for one in places for name in m.findall(one, m.Name()) if isinstance(name, cst.Name))


FAMILY = Family("before the call", ("graph-break",), _propose)
