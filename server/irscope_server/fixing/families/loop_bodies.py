"""A loop that runs another number of times in each call: its body is compiled, once for all numbers of times.

Compiled code has a loop unrolled, so each number is one more compile.  The function keeps its name and its loop, which is
plain Python then; no operation on a tensor leaves the graph, since all of them are in the body.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source, statements
from irscope_server.fixing.splitting import can_be_split, is_method, split

_TITLE = "Compile the body of the loop, not the loop"
_CAVEAT = "Each turn is a call of the graph, and nothing is fused across turns. Many short turns can be slower."
_LENGTHS = ("range", "len", "enumerate", "zip", "reversed")


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node, torch = source.at(finding.range), source.module_name("torch")
    function = source.function(node) if node is not None else None
    function = function or next(iter(source.on_line(finding.range.start.line, cst.FunctionDef)), None)
    if torch is None or function is None or is_method(source, function) or not can_be_split(source, function):
        return
    assert isinstance(function.body, cst.IndentedBlock)
    loops = [one for one in function.body.body if isinstance(one, cst.For)]
    if len(loops) != 1 or not _is_only_work(source, function, loops[0]):
        return
    text = _with_body_apart(source, function, loops[0], torch)
    if text is not None:
        yield Proposal(_TITLE, _CAVEAT, text)


def _is_only_work(source: Source, function: cst.FunctionDef, loop: cst.For) -> bool:
    """Whether a function computes nothing outside of the body of its loop: it names things, and returns one."""
    if loop.orelse is not None or loop.asynchronous is not None or not isinstance(loop.body, cst.IndentedBlock):
        return False
    odd = m.Return() | m.Break() | m.Continue() | m.Yield() | m.Global() | m.Nonlocal() | m.Del() | m.FunctionDef()
    if m.findall(loop.body, odd | m.Lambda() | m.Import() | m.ImportFrom() | m.ClassDef() | m.NamedExpr()):
        return False
    assert isinstance(function.body, cst.IndentedBlock)
    others = [one for one in function.body.body if one is not loop]
    simple = all(isinstance(one, cst.SimpleStatementLine) for one in others)
    work = m.BinaryOperation() | m.UnaryOperation() | m.Comparison() | m.BooleanOperation() | m.AugAssign()
    computes = any(m.findall(one, work) for one in others)
    calls = [each for one in (*others, loop.iter) for each in m.findall(one, m.Call())]
    return (
        simple and not computes and all(source.code(cst.ensure_type(one, cst.Call).func) in _LENGTHS for one in calls)
    )


def _with_body_apart(source: Source, function: cst.FunctionDef, loop: cst.For, torch: str) -> str | None:
    """The text with the body as a separate function; None if it changes nothing that is read after it."""
    local = _names(function.params, m.Param()) | _assigned(function.body)
    changed = sorted(_assigned(loop.body))
    read = {one.value for one in m.findall(loop.body, m.Name()) if isinstance(one, cst.Name)}
    given = sorted((read & local) | set(changed))
    if not changed or any(name not in _known_before(source, function, loop) for name in given):
        return None
    name = source.fresh(f"{function.name.value}_turn")
    result = ", ".join(changed)
    body = cst.ensure_type(loop.body, cst.IndentedBlock)
    turn = cst.FunctionDef(
        cst.Name(name), cst.Parameters([cst.Param(cst.Name(one)) for one in given]),
        body.with_changes(body=[*body.body, *statements(f"return {result}")]),
    )  # fmt: skip
    call = statements(f"{result} = {name}({', '.join(given)})")
    outer = function.body.deep_replace(loop.body, body.with_changes(body=call))
    assert isinstance(outer, cst.BaseSuite)
    return split(source, function, outer, turn, torch, first="inner")


def _known_before(source: Source, function: cst.FunctionDef, loop: cst.For) -> frozenset[str]:
    """Names that have a value when a turn begins: parameters, what is assigned above the loop, and what it counts."""
    assert isinstance(function.body, cst.IndentedBlock)
    above = [one for one in function.body.body if source.line(one) < source.line(loop)]
    found = {name for one in above for name in _assigned(one)}
    targets = {one.value for one in m.findall(loop.target, m.Name()) if isinstance(one, cst.Name)}
    return frozenset(found | targets | _names(function.params, m.Param()))


def _assigned(node: cst.CSTNode) -> set[str]:
    return _names(node, m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.AsName())


def _names(node: cst.CSTNode, kinds: m.BaseMatcherNode) -> set[str]:
    found = m.findall(node, kinds)
    places = [one.name if isinstance(one, (cst.Param, cst.AsName)) else one.target for one in found]  # type: ignore[attr-defined]
    return {name.value for one in places for name in m.findall(one, m.Name()) if isinstance(name, cst.Name)}


FAMILY = Family("loop bodies", ("recompilation",), _propose, ("recompile-value", "recompile-condition"))
