"""What compiled code computes from constants alone: once, above the function."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.imports import above
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_CHANGING = (
    "time.", "datetime.", "random.", "secrets.", "uuid.", "os.", "sys.", "threading.", "platform.", "socket.",
    "numpy.random.", "torch.", "open", "input", "next", "iter", "id", "globals", "locals", "vars", "object",
)  # fmt: skip
"""What gives something else each time, or changes something: modules end with a dot."""
_CAVEAT = "It is then the same in every call."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement = source.statement(node) if node is not None else None
    if node is None or statement is None or source.function(node) is None:
        return
    for value, name in _values(source, statement):
        if not isinstance(value, (cst.SimpleString, cst.Name, cst.Integer, cst.Float)) and _is_constant(source, value):
            fresh = source.fresh(f"_{name.strip('_').upper()}")
            text = above(source, statement, f"{fresh} = {source.code(value)}\n", {value: cst.Name(fresh)})
            yield Proposal(FixMethod.COMPUTE_ONCE.title, _CAVEAT, text, method=FixMethod.COMPUTE_ONCE)


def _values(source: Source, statement: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, str]]:
    """The whole value that a statement assigns, or what a loop runs over."""
    if isinstance(statement, cst.For):
        yield statement.iter, "items"
    if isinstance(statement, cst.SimpleStatementLine):
        for one in statement.body:
            if isinstance(one, cst.Assign) and isinstance(one.targets[0].target, cst.Name):
                yield one.value, one.targets[0].target.value


def _is_constant(source: Source, value: cst.BaseExpression) -> bool:
    """Whether an expression reads only modules, builtins, names of its own and constants of the file, and nothing that changes."""
    own = {
        name.value
        for loop in m.findall(value, m.CompFor())
        for name in m.findall(loop.target, m.Name())  # type: ignore[attr-defined]
        if isinstance(name, cst.Name)
    }
    words = {one.attr.value for one in m.findall(value, m.Attribute()) if isinstance(one, cst.Attribute)}
    words |= {
        one.keyword.value
        for one in m.findall(value, m.Arg(keyword=m.Name()))
        if isinstance(one, cst.Arg) and one.keyword
    }
    read = {one.value for one in m.findall(value, m.Name()) if isinstance(one, cst.Name)} - own
    calls = [source.full_name(one.func) for one in m.findall(value, m.Call()) if isinstance(one, cst.Call)]
    if any(name == one or (one.endswith(".") and name.startswith(one)) for name in calls for one in _CHANGING):
        return False
    known = source.imported_names | source.constants
    return all(name in known or hasattr(builtins, name) or name in words for name in read)


FAMILY = Family("constants", ("graph-break",), _propose)
