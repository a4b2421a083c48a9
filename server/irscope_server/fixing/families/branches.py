"""``if`` and conditional expressions on values of tensors: both sides are computed, and the values are chosen."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.conditions import condition_of, tight
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.predication import RETURNED, Flattening, NotPossible
from irscope_server.fixing.source import Change, Source, in_place_of

_TITLE = "Compute both sides and choose by value"
_SAFE_TITLE = f"{_TITLE}, and divide by 1 where a side does not count"
_CAVEAT = "Both sides are computed, and their shapes must broadcast."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    decision = source.first_around(node, cst.If) if node is not None else None
    torch = source.module_name("torch")
    if decision is None or torch is None or source.function(decision) is None:
        return
    while isinstance(outer := source.parent(decision), cst.If) and outer.orelse is decision:
        decision = outer  # an elif is a part of the first if
    whole: list[cst.If] = [decision]
    while (around := _if_around(source, whole[-1])) is not None:
        whole.append(around)
    for one in whole:
        text = _flattened(source, one, torch)
        if text is not None:
            yield Proposal(_TITLE, _CAVEAT, text)
    safe = _with_safe_divisors(source, decision, torch)
    again = Source(safe) if safe is not None else None
    same = list(again.on_line(source.line(decision), cst.If)) if again is not None else []
    text = _flattened(again, same[0], torch) if again is not None and same else None
    if text is not None:
        yield Proposal(_SAFE_TITLE, _CAVEAT, text)


def _with_safe_divisors(source: Source, decision: cst.If, torch: str) -> str | None:
    """The text with ones in the place of the divisors that the condition is about, where its side does not count: what
    is divided by zero there would make the gradients of the other side NaN.  None if there is no such divisor."""
    read = {one.value for one in m.findall(decision.test, m.Name()) if isinstance(one, cst.Name)}
    test = condition_of(source, decision.test)
    if test is None:
        return None
    sides = [(decision.body, tight(test))]
    if isinstance(decision.orelse, cst.Else):
        sides.append((decision.orelse.body, f"~{tight(test)}"))
    changes: dict[cst.CSTNode, Change] = {}
    for side, counts in sides:
        for one in m.findall(side, m.BinaryOperation(operator=m.Divide(), right=m.Name())):
            divisor = cst.ensure_type(one, cst.BinaryOperation).right
            name = source.code(divisor)
            if name in read:
                changes[divisor] = cst.parse_expression(f"{torch}.where({counts}, {name}, {torch}.ones_like({name}))")
    return source.changed(changes) if changes else None


def _if_around(source: Source, node: cst.If) -> cst.If | None:
    block = source.parent(node)
    one = source.parent(block) if block is not None else None
    if isinstance(one, cst.Else):
        one = source.parent(one)
    while isinstance(outer := source.parent(one) if one is not None else None, cst.If) and outer.orelse is one:
        one = outer
    return one if isinstance(one, cst.If) else None


def _flattened(source: Source, decision: cst.If, torch: str) -> str | None:
    """The text with an ``if``, and what comes after it where it returns, in straight code; None if that is not possible."""
    returns = bool(m.findall(decision, m.Return()))
    after = list(source.following(decision)) if returns else []
    try:
        flat = Flattening(source, torch, _bound_before(source, decision)).block([decision, *after], {})
    except (NotPossible, cst.ParserSyntaxError):
        return None
    if returns != (RETURNED in flat.values):
        return None
    values = [(name, value) for name, value in flat.values.items() if name not in (RETURNED, value)]
    if RETURNED in flat.values:
        lines = [*flat.lines, f"return {flat.values[RETURNED]}"]
    else:
        lines = [*flat.lines, *_bound(values)]
    if not lines:
        return None
    code = "\n".join([*_comments(source, [decision, *after]), *lines]) + "\n"
    changes: dict[cst.CSTNode, Change] = {decision: in_place_of(decision, code)}
    changes |= {one: cst.RemoveFromParent() for one in after}
    return source.changed(changes)


def _bound_before(source: Source, decision: cst.If) -> frozenset[str]:
    """The names that have a value when the ``if`` begins: arguments, and what is assigned on the lines above it."""
    function = source.function(decision)
    if function is None:
        return frozenset()
    names = {one.name.value for one in m.findall(function.params, m.Param()) if isinstance(one, cst.Param)}
    line = source.line(decision)
    targets = m.findall(function.body, m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.AsName())
    for target in targets:
        if source.line(target) < line:
            place = target.name if isinstance(target, cst.AsName) else target.target  # type: ignore[attr-defined]
            names |= {one.value for one in m.findall(place, m.Name()) if isinstance(one, cst.Name)}
    return frozenset(names)


def _bound(values: list[tuple[str, str]]) -> list[str]:
    """Assignments of all values at once, since one may read the name of another."""
    if not values:
        return []
    if len(values) == 1:
        return [f"{values[0][0]} = {values[0][1]}"]
    return [f"{', '.join(name for name, _ in values)} = {', '.join(value for _, value in values)}"]


def _comments(source: Source, nodes: list[cst.BaseStatement]) -> list[str]:
    """The comments inside of the statements that go; those above the first stay where they are."""
    first = {line.comment.value for line in getattr(nodes[0], "leading_lines", ()) if line.comment is not None}
    found = [one.value for node in nodes for one in m.findall(node, m.Comment()) if isinstance(one, cst.Comment)]
    return [text for text in dict.fromkeys(found) if text not in first]


FAMILY = Family("branches", ("graph-break",), _propose, ("GB0170", "GB0124", "GB0033"))
