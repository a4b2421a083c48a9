"""Layers that are skipped by a random number (LayerDrop): the layer is computed, and what it gives is chosen or not."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source, in_place_of, statements

_TITLE = "Compute the layer, and choose by value whether it counts"
_CAVEAT = (
    "A skipped layer is computed, too, and draws its random numbers. Its parameters get a gradient of zero, not None, "
    "which optimizers with momentum or weight decay treat differently."
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    node = source.at(finding.range)
    decision = source.first_around(node, cst.If) if node is not None else None
    loop = source.first_around(decision, cst.For) if decision is not None else None
    if torch is None or decision is None or loop is None or not isinstance(loop.body, cst.IndentedBlock):
        return
    for changes in (_continued(source, decision, loop, torch), _flagged(source, decision, loop, torch)):
        if changes:
            yield Proposal(_TITLE, _CAVEAT, source.changed(changes))


def _continued(source: Source, decision: cst.If, loop: cst.For, torch: str) -> dict[cst.CSTNode, Change]:
    """``if p < drop: continue``, directly or below one other ``if``, and after it one assignment."""
    if decision.orelse is not None or not m.matches(_only(decision), m.SimpleStatementLine(body=[m.Continue()])):
        return {}
    outer: cst.CSTNode = decision
    while source.parent(source.parent(outer) or outer) is not loop:
        outer = source.parent(outer) or loop
        if outer is loop or (isinstance(outer, cst.If) and outer.orelse is not None):
            return {}
    rest = source.following(outer)
    name = _assigned(rest[0]) if len(rest) == 1 else None
    if name is None:
        return {}
    skipped, before = source.fresh("skipped"), source.fresh(f"{name}_before")
    made: dict[cst.CSTNode, Change] = {decision: in_place_of(decision, f"{skipped} = {source.code(decision.test)}\n")}
    first = statements(f"{skipped} = None\n")[0]
    whole = cst.ensure_type(outer, cst.If)
    if whole is decision:
        made[decision] = in_place_of(decision, f"{skipped} = {source.code(decision.test)}\n")
    else:
        inner = whole.deep_replace(decision, cst.ensure_type(made.pop(decision), cst.FlattenSentinel).nodes[0])
        head = first.with_changes(leading_lines=whole.leading_lines)
        made[whole] = cst.FlattenSentinel([head, cst.ensure_type(inner, cst.If).with_changes(leading_lines=[])])
    chosen = f"if {skipped} is not None:\n    {name} = {torch}.where({skipped}, {before}, {name})\n"
    return {**made, rest[0]: _around(rest[0], f"{before} = {name}\n", chosen)}


def _flagged(source: Source, decision: cst.If, loop: cst.For, torch: str) -> dict[cst.CSTNode, Change]:
    """A flag that is False, or set where a random number is small; then ``if not flag:`` and one assignment below it."""
    uses = [
        one
        for one in m.findall(loop.body, m.If())
        if isinstance(one, cst.If) and one.orelse is None and _flag(one) is not None
    ]
    if len(uses) != 1:
        return {}
    flag, use = _flag(uses[0]) or "", uses[0]
    name = _assigned(_only(use))
    if name is None:
        return {}
    changes: dict[cst.CSTNode, Change] = {}
    for one in m.findall(loop.body, m.If(body=m.IndentedBlock(body=[_set(flag, "True")]), orelse=None)):
        assert isinstance(one, cst.If)
        changes[one] = in_place_of(one, f"{flag} = {source.code(one.test)}\n")
    assigned = m.findall(loop.body, m.Assign(targets=[m.AssignTarget(target=m.Name(flag))]))
    values = [source.code(one.value) for one in assigned if isinstance(one, cst.Assign)]
    compares = any(isinstance(one, cst.Assign) and isinstance(one.value, cst.Comparison) for one in assigned)
    if len(values) != 2 or "False" not in values or not (compares or changes):
        return {}
    others = [source.code(one) for one in _operands(use.test)[1:]]
    test = " and ".join([f"{flag} is not False", *(f"not {one}" for one in others)])
    before = source.fresh(f"{name}_before")
    chosen = f"if {test}:\n    {name} = {torch}.where({flag}, {before}, {name})\n"
    first, *more = _around(_only(use), f"{before} = {name}\n", chosen).nodes
    assert isinstance(first, cst.SimpleStatementLine)
    first = first.with_changes(leading_lines=[*use.leading_lines, *first.leading_lines])
    return {**changes, use: cst.FlattenSentinel([first, *more])}


def _around(statement: cst.BaseStatement, before: str, after: str) -> cst.FlattenSentinel[cst.BaseStatement]:
    (first,), last = statements(before), statements(after)
    leading = getattr(statement, "leading_lines", ())
    return cst.FlattenSentinel(
        [first.with_changes(leading_lines=leading), statement.with_changes(leading_lines=[]), *last]
    )


def _operands(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The operands of ``a or b or c``."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        return [*_operands(test.left), test.right]
    return [test]


def _flag(node: cst.If) -> str | None:
    """The name in ``if not flag:`` or ``if not flag or other:``, where the others are plain names."""
    first, *others = _operands(node.test)
    if not m.matches(first, m.UnaryOperation(operator=m.Not(), expression=m.Name())):
        return None
    if not all(isinstance(one, cst.Name) for one in others):
        return None
    return cst.ensure_type(cst.ensure_type(first, cst.UnaryOperation).expression, cst.Name).value


def _set(flag: str, value: str) -> m.SimpleStatementLine:
    return m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name(flag))], value=m.Name(value))])


def _only(node: cst.If) -> cst.BaseStatement:
    """The one statement below an ``if``; a pass if there are several."""
    body = node.body.body
    one = body[0] if len(body) == 1 else None
    return one if isinstance(one, cst.BaseStatement) else cst.SimpleStatementLine([cst.Pass()])


def _assigned(statement: cst.BaseStatement) -> str | None:
    """The name that a statement assigns what is called with it: ``x = layer(x)``."""
    if not m.matches(
        statement, m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name())], value=m.Call())])
    ):
        return None
    target = m.findall(statement, m.AssignTarget())[0]
    name = cst.ensure_type(cst.ensure_type(target, cst.AssignTarget).target, cst.Name).value
    read = cst.ensure_type(cst.ensure_type(statement, cst.SimpleStatementLine).body[0], cst.Assign).value
    return name if m.findall(read, m.Name(name)) else None


FAMILY = Family("dropped layers", ("graph-break",), _propose, ("GB0170",))
