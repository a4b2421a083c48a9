"""Loops whose turns end early, by values of tensors: all turns are computed, and what does not count is not kept.

``if (new - x).abs().max() < 1e-3: break`` freezes what the loop computes; ``if not keep[i]: continue`` leaves out the rest of
one turn.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.choosing import NotPossible, chosen
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.predication import Flat, Flattening
from irscope_server.fixing.source import Source, statements

_BREAK_TITLE = "Compute all turns of the loop, and keep what was there when it ends"
_CONTINUE_TITLE = "Compute all of each turn, and choose by value whether it counts"
_CAVEAT = "Turns that do not count are computed, too."
_ODD = (
    m.Return() | m.Break() | m.Continue() | m.Yield() | m.Await() | m.Global() | m.Nonlocal() | m.Del() | m.FunctionDef()
    | m.ClassDef() | m.Lambda() | m.NamedExpr() | m.Try() | m.With() | m.For() | m.While()
)  # fmt: skip


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node, torch = source.at(finding.range), source.module_name("torch")
    decision = source.first_around(node, cst.If) if node is not None else None
    loop = source.first_around(decision, cst.For) if decision is not None else None
    function = source.function(decision) if decision is not None else None
    if torch is None or decision is None or loop is None or function is None or source.function(loop) is not function:
        return
    if source.parent(decision) is not loop.body or decision.orelse is not None or loop.orelse is not None:
        return
    last = decision.body.body[-1]
    end = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else last
    if not isinstance(end, (cst.Break, cst.Continue)) or len(m.findall(loop.body, _ODD)) != 1:
        return
    try:
        text = _flattened(source, function, loop, decision, torch, isinstance(end, cst.Break))
    except (NotPossible, cst.ParserSyntaxError):
        return
    yield Proposal(_BREAK_TITLE if isinstance(end, cst.Break) else _CONTINUE_TITLE, _CAVEAT, text)


def _flattened(
    source: Source, function: cst.FunctionDef, loop: cst.For, decision: cst.If, torch: str, ends: bool
) -> str:  # fmt: skip
    """The text with straight code in the loop.  Raises NotPossible.

    Parameters
    ----------
    ends
        Whether the loop ends there, not only the turn.
    """
    bound = _bound_before(source, function, loop)
    flattening, flat = Flattening(source, torch, bound), Flat()
    body = [one for one in loop.body.body if isinstance(one, cst.BaseStatement)]
    at = body.index(decision)
    count = next((n for n, one in enumerate(body[:at]) if not _is_local(one, bound)), at) if ends else at
    kept, before = body[:count], body[count:at]  # what only this turn has, and what comes before a continue, stays
    flat = flattening.block(before, {})
    stop = flattening.named(flat, "stop" if ends else "skipped", decision.test)
    own = decision.body.body[:-1]
    block = cst.IndentedBlock([one for one in own if isinstance(one, cst.BaseStatement)] or statements("pass"))
    flattening.decide(flat, decision.with_changes(test=cst.Name(stop), body=block), body[at + 1 :])
    assigned = {one.value for one in m.findall(loop, m.Name()) if isinstance(one, cst.Name)} & _assigned(loop)
    values = {name: value for name, value in flat.values.items() if name in bound and value != name}
    outside = _read_outside(source, function, loop)
    if not values or any("." in name for name in flat.values) or (assigned - bound) & outside:
        raise NotPossible
    going = source.fresh("going")
    if ends:
        values = {name: chosen(torch, going, value, name) for name, value in values.items()}
    lines = [*flat.lines, f"{', '.join(values)} = {', '.join(values.values())}"]
    lines += [f"{going} = {going} & ~{stop}"] if ends else []
    comments = [one.value for each in body[count:] for one in m.findall(each, m.Comment())]  # type: ignore[attr-defined]
    made = statements("\n".join([*dict.fromkeys(comments), *lines]) + "\n")
    inside = cst.ensure_type(loop.body, cst.IndentedBlock).with_changes(body=[*kept, *made])
    changed = loop.with_changes(body=inside)
    if not ends:
        return source.changed({loop: changed})
    first = next(iter(values))
    (begin,) = statements(f"{going} = {torch}.ones((), dtype={torch}.bool, device={first}.device)\n")
    begin = begin.with_changes(leading_lines=loop.leading_lines)
    return source.changed({loop: cst.FlattenSentinel([begin, changed.with_changes(leading_lines=[])])})


def _is_local(statement: cst.BaseStatement, bound: frozenset[str]) -> bool:
    """Whether a statement only gives names a value that have none before the loop."""
    if not m.matches(statement, m.SimpleStatementLine(body=[m.Assign()])):
        return False
    targets = [cst.ensure_type(one, cst.AssignTarget) for one in m.findall(statement, m.AssignTarget())]
    plain = all(m.matches(one.target, m.Name() | m.Tuple()) for one in targets)
    return plain and not any(_names(one) & bound for one in targets)


def _bound_before(source: Source, function: cst.FunctionDef, loop: cst.For) -> frozenset[str]:
    """Names that have a value when the loop begins."""
    names = {one.name.value for one in m.findall(function.params, m.Param()) if isinstance(one, cst.Param)}
    for target in m.findall(function.body, _TARGETS):
        if source.line(target) < source.line(loop):
            names |= _names(target)
    return frozenset(names)


_TARGETS = m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.AsName()


def _assigned(loop: cst.For) -> set[str]:
    """The names that the loop assigns, with those that it counts."""
    return {name for one in (loop, *m.findall(loop.body, _TARGETS)) for name in _names(one)}


def _names(target: cst.CSTNode) -> set[str]:
    place = target.name if isinstance(target, cst.AsName) else target.target  # type: ignore[attr-defined]
    return {one.value for one in m.findall(place, m.Name()) if isinstance(one, cst.Name)}


def _read_outside(source: Source, function: cst.FunctionDef, loop: cst.For) -> set[str]:
    """The names in the function outside of the loop."""
    first, last = source.line(loop), source.last_line(loop)
    found = [one for one in m.findall(function.body, m.Name()) if not first <= source.line(one) <= last]
    return {one.value for one in found if isinstance(one, cst.Name)}


FAMILY = Family("loop exits", ("graph-break",), _propose, ("GB0170", "GB0124", "GB0033"))
