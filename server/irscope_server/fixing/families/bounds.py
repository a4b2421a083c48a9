"""Numbers of tensors that are compared with sizes: symbols of the graph, whose bounds the graph checks."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.imports import at_top, with_import
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source, in_place_of

_TITLE = "Let the number be a symbol of the graph, and check its bounds there"
_CAVEAT = "The setting is for all compiled functions of the process."
_CHECKS = " A failed check is a RuntimeError, without the values of the message."
_SETTING = "capture_scalar_outputs"
_OPPOSITE = {
    cst.LessThan: cst.GreaterThanEqual, cst.LessThanEqual: cst.GreaterThan, cst.GreaterThan: cst.LessThanEqual,
    cst.GreaterThanEqual: cst.LessThan, cst.Equal: cst.NotEqual, cst.NotEqual: cst.Equal,
}  # fmt: skip
_NUMBER = m.Call(func=m.Attribute(attr=m.Name("item") | m.Name("tolist"))) | m.Call(func=m.Name("int"), args=[m.Arg()])


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    """All decisions of the function on its numbers at once: each would be the next break."""
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    torch = source.module_name("torch")
    if function is None or torch is None:
        return
    numbers = _numbers(function)
    changes: dict[cst.CSTNode, Change] = {}
    caveat = _CAVEAT
    for decision in m.findall(function.body, m.If(orelse=None) | m.Assert()):
        assert isinstance(decision, (cst.If, cst.Assert))
        if source.function(decision) is not function or not _reads(decision.test, numbers):
            continue
        if isinstance(decision, cst.Assert):
            check = _asserted(source, decision, torch)
            if check is None:
                return
            changes |= check
            caveat = f"{_CAVEAT}{_CHECKS}"
            continue
        lines = _checked(source, decision, torch)
        if lines and _CHECKS not in caveat:
            caveat += _CHECKS
        lines = lines or _clamped(source, decision)
        if not lines:
            return
        outer = source.parent(decision)
        if isinstance(outer, cst.If) and outer.orelse is decision:
            return  # an elif
        changes[decision] = in_place_of(decision, "\n".join(lines) + "\n")
    if changes:
        yield Proposal(_TITLE, caveat, _with_setting(source.changed(changes)))


def _numbers(function: cst.FunctionDef) -> frozenset[str]:
    """Names that the function gives the number of a tensor: ``n = lengths.max().item()``, ``for n in lengths.tolist()``."""
    named = [
        one.targets[0].target
        for one in m.findall(function.body, m.Assign(targets=[m.AssignTarget(target=m.Name())], value=_NUMBER))
        if isinstance(one, cst.Assign)
    ]
    loops = m.findall(function.body, m.For(target=m.Name(), iter=_NUMBER))
    named += [one.target for one in loops if isinstance(one, cst.For)]
    return frozenset(one.value for one in named if isinstance(one, cst.Name))


def _reads(test: cst.BaseExpression, numbers: frozenset[str]) -> bool:
    return any(isinstance(one, cst.Name) and one.value in numbers for one in m.findall(test, m.Name()))


def _checked(source: Source, decision: cst.If, torch: str) -> list[str]:
    """``if n > limit: raise ValueError("too long")`` as checks that the graph makes; one for each operand of ``or``."""
    (statement, *more) = decision.body.body
    if more or not m.matches(statement, m.SimpleStatementLine(body=[m.Raise(exc=m.Call() | m.Name(), cause=None)])):
        return []
    raised = cst.ensure_type(cst.ensure_type(statement, cst.SimpleStatementLine).body[0], cst.Raise).exc
    message = raised.args[0].value if isinstance(raised, cst.Call) and raised.args else None
    words = _words(source, message)
    wanted = [_opposite(source, one) for one in _operands(decision.test, cst.Or)]
    return [] if None in wanted else [f"{torch}._check({one}{words})" for one in wanted]


def _asserted(source: Source, statement: cst.Assert, torch: str) -> dict[cst.CSTNode, Change] | None:
    """``assert n <= limit, "too long"`` as checks that the graph makes; one for each operand of ``and``, on its own line."""
    wanted, line = _operands(statement.test, cst.And), source.parent(statement)
    if not all(m.matches(one, m.Comparison(comparisons=[m.ComparisonTarget()])) for one in wanted):
        return None
    words = _words(source, statement.msg)
    calls = [cst.Expr(cst.parse_expression(f"{torch}._check({source.code(one)}{words})")) for one in wanted]
    if len(calls) == 1:
        return {statement: calls[0]}
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    lines = [cst.SimpleStatementLine([one]) for one in calls]
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    lines[-1] = lines[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
    return {line: cst.FlattenSentinel(lines)}


def _words(source: Source, message: cst.BaseExpression | None) -> str:
    """The argument with the message of a check, if it is a constant text."""
    return f", lambda: {source.code(message)}" if isinstance(message, cst.SimpleString) else ""


def _operands(test: cst.BaseExpression, word: type[cst.BaseBooleanOp]) -> list[cst.BaseExpression]:
    """The operands of ``a or b or c``, where ``word`` is `libcst.Or`."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, word):
        return [*_operands(test.left, word), *_operands(test.right, word)]
    return [test]


def _opposite(source: Source, test: cst.BaseExpression) -> str | None:
    """The opposite of a comparison of integers."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    made = _OPPOSITE.get(type(test.comparisons[0].operator))
    if made is None:
        return None
    sign = {cst.LessThan: "<", cst.LessThanEqual: "<=", cst.GreaterThan: ">", cst.GreaterThanEqual: ">=",
            cst.Equal: "==", cst.NotEqual: "!="}[made]  # fmt: skip
    return f"{source.code(test.left)} {sign} {source.code(test.comparisons[0].comparator)}"


def _clamped(source: Source, decision: cst.If) -> list[str]:
    """``if n > limit: n = limit`` as ``n = min(n, limit)``."""
    (statement, *more) = decision.body.body
    assigned = m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name())])])
    test = decision.test
    if more or not m.matches(statement, assigned) or not m.matches(test, m.Comparison(left=m.Name())):
        return []
    assign = cst.ensure_type(cst.ensure_type(statement, cst.SimpleStatementLine).body[0], cst.Assign)
    assert isinstance(test, cst.Comparison)
    name, limit = source.code(test.left), source.code(test.comparisons[0].comparator)
    if (
        len(test.comparisons) != 1
        or source.code(assign.targets[0].target) != name
        or source.code(assign.value) != limit
    ):
        return []
    above = isinstance(test.comparisons[0].operator, (cst.GreaterThan, cst.GreaterThanEqual))
    below = isinstance(test.comparisons[0].operator, (cst.LessThan, cst.LessThanEqual))
    return [f"{name} = {'min' if above else 'max'}({name}, {limit})"] if above or below else []


def _with_setting(text: str) -> str:
    if _SETTING in text:
        return text
    made = Source(at_top(Source(text), f"torch._dynamo.config.{_SETTING} = True\n"))
    return with_import(made.module.code, "torch._dynamo")


FAMILY = Family("bounds", ("graph-break",), _propose, ("GB0124", "GB0033", "data-dependent-guard"))
