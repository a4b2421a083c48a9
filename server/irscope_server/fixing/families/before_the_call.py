"""What compiled code does with plain Python alone, such as drawing a number: done by a plain function around it, before it.

The function keeps its name.  It is not compiled, does this, and calls the rest, which is compiled as a whole; so no
operation on a tensor leaves the graph.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source, statements
from irscope_server.fixing.splitting import can_be_split, is_method, split

_TITLE = "Do it before the compiled code, and pass on what comes of it"
_CAVEAT = "Compiled code is made for each truth value, text or integer that is passed on."


@dataclass
class _Moved:
    """What is done before: its lines, the names that the rest needs of it, and what changes in the rest."""

    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    changes: dict[cst.CSTNode, Change] = field(default_factory=dict)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node, torch = source.at(finding.range), source.module_name("torch")
    function = source.function(node) if node is not None else None
    if node is None or torch is None or function is None or not can_be_split(source, function):
        return
    assert isinstance(function.body, cst.IndentedBlock)
    body = [one for one in function.body.body if isinstance(one, cst.BaseStatement)]
    moved, local = _Moved(), _bound(function.params) | _bound(function.body)
    inside = list(source.around(node))
    is_past = False
    for statement in body:
        before = len(moved.lines)
        _move(source, statement, local, moved)
        if is_past and len(moved.lines) == before:
            break
        is_past = is_past or statement in inside
    if not moved.lines or not any(one in moved.changes for one in inside):
        return
    yield Proposal(_TITLE, _CAVEAT, _split(source, function, torch, moved), last=True)


def _move(source: Source, statement: cst.BaseStatement, local: frozenset[str], moved: _Moved) -> None:
    """A statement, or the condition of an ``if``, that reads nothing of the function's own."""
    known = local - set(moved.names)
    if (
        isinstance(statement, cst.If)
        and m.findall(statement.test, m.Call())
        and _is_plain(source, statement.test, known)
    ):
        name = source.fresh("decided")
        if name not in moved.names:
            moved.lines.append(f"{name} = {source.code(statement.test)}")
            moved.names.append(name)
            moved.changes[statement.test] = cst.Name(name)
    elif isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        value = small.value if isinstance(small, (cst.Assign, cst.Expr)) else None
        if value is None or not m.findall(value, m.Call()) or not _is_plain(source, value, known):
            return
        if isinstance(small, cst.Assign):
            if not m.matches(small, m.Assign(targets=[m.AssignTarget(target=m.Name())])):
                return
            moved.names.append(source.code(small.targets[0].target))
        moved.lines.append(source.code(small))
        moved.changes[statement] = cst.RemoveFromParent()


def _is_plain(source: Source, value: cst.BaseExpression, local: frozenset[str]) -> bool:
    """Whether an expression reads names of the module alone, and calls nothing of torch or of the file's functions."""
    read = {one.value for one in m.findall(value, m.Name()) if isinstance(one, cst.Name)}
    calls = [source.full_name(one.func) for one in m.findall(value, m.Call()) if isinstance(one, cst.Call)]
    heads = {name.partition(".")[0] for name in calls}
    imported = heads - {"torch", ""} <= _modules(source) | set(dir(builtins)) | _top_level(source)
    return not read & local and "torch" not in heads and imported


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


def _split(source: Source, function: cst.FunctionDef, torch: str, moved: _Moved) -> str:
    """The plain function, and after it what it calls."""
    params = [*function.params.posonly_params, *function.params.params]
    given = [one.name.value for one in params]
    rest = source.fresh(f"{function.name.value.strip('_')}_after")
    call = ", ".join([*given[1:], *moved.names] if is_method(source, function) else [*given, *moved.names])
    target = f"{given[0]}.{rest}" if is_method(source, function) else rest
    outer = cst.IndentedBlock(statements("\n".join([*moved.lines, f"return {target}({call})"])))
    kept = function.body.visit(_Changed(moved.changes))
    assert isinstance(kept, cst.IndentedBlock)
    plain = [cst.Param(cst.Name(name)) for name in (*given, *moved.names)]
    inner = function.with_changes(
        name=cst.Name(rest), params=cst.Parameters(plain), returns=None,
        body=kept if kept.body else kept.with_changes(body=statements("pass")),
    )  # fmt: skip
    return split(source, function, outer, inner, torch, first="outer" if is_method(source, function) else "inner")


class _Changed(cst.CSTTransformer):
    def __init__(self, changes: dict[cst.CSTNode, Change]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Change:  # type: ignore[override]
        return self._changes.get(original_node, updated_node)


FAMILY = Family("before the call", ("graph-break",), _propose)
