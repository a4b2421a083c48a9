"""``if`` and conditional expressions on values of tensors: both sides are computed, and the values are chosen."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.choosing import NotPossible
from irscope_server.fixing.conditions import condition_of, is_flag, tight
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.predication import RETURNED, Flattening
from irscope_server.fixing.source import Change, Source, in_place_of

_TITLE = FixMethod.CHOOSE_BY_VALUE.title
_SAFE_TITLE = f"{_TITLE}, and divide by 1 where a side does not count"
_ROOT_TITLE = f"{_TITLE}, and take the root or logarithm of 1 where a side does not count"
_IN_PLACE_TITLE = f"{_TITLE}, in place"
_ROOTS = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"})
"""Functions whose gradient at zero is not finite."""
_CAVEAT = "Both sides are computed, and their shapes must broadcast."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    decision = source.first_around(node, cst.If) if node is not None else None
    torch = source.module_name("torch")
    yield from _of_chain(source, finding)
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
            yield Proposal(_TITLE, _CAVEAT, text, method=FixMethod.CHOOSE_BY_VALUE)
    title, safe = _with_safe_divisors(source, decision, torch)
    again = Source(safe) if safe else None
    same = list(again.on_line(source.line(decision), cst.If)) if again is not None else []
    text = _flattened(again, same[0], torch) if again is not None and same else None
    if text is not None:
        yield Proposal(title, _CAVEAT, text)
    text = _flattened(source, decision, torch, in_place=True)
    if text is not None:
        yield Proposal(_IN_PLACE_TITLE, _CAVEAT, text)


def _of_chain(source: Source, finding: Finding) -> Iterator[Proposal]:
    """``a if p else b if q else c``: all of it, since each condition is a break at the same line."""
    torch = source.module_name("torch")
    chains = source.on_line(finding.range.start.line, cst.IfExp)
    whole = next((one for one in chains if not isinstance(source.parent(one), cst.IfExp)), None)
    if torch is None or whole is None or source.function(whole) is None or not m.findall(whole.orelse, m.IfExp()):
        return
    text = _chosen(source, whole, torch)
    if text is not None:
        made = source.changed({whole: cst.parse_expression(text)})
        yield Proposal(_TITLE, _CAVEAT, made, method=FixMethod.CHOOSE_BY_VALUE)


def _chosen(source: Source, node: cst.BaseExpression, torch: str) -> str | None:
    """The code of an expression with torch.where in the place of a conditional one; None if a condition is not a tensor's."""
    if not isinstance(node, cst.IfExp):
        return source.code(node)
    test = None if is_flag(node.test) else condition_of(source, node.test)
    sides = [_chosen(source, one, torch) for one in (node.body, node.orelse)]
    return None if test is None or None in sides else f"{torch}.where({test}, {sides[0]}, {sides[1]})"


def _with_safe_divisors(source: Source, decision: cst.If, torch: str) -> tuple[str, str]:
    """The text with ones in the place of what the condition is about, where its side does not count and divides by it or
    takes its root: the gradients there are infinite at zero, and would make those of the other side NaN.

    Returns a title and the text; both empty if nothing is divided by.
    """
    sides, asked = _sides(source, decision)
    changes: dict[cst.CSTNode, Change] = {}
    divides = False
    for side, counts in sides:
        for one, is_divisor in _divisors(source, side):
            if source.code(one) in asked:
                text = f"{torch}.where({counts}, {source.code(one)}, {torch}.ones_like({source.code(one)}))"
                changes[one] = cst.parse_expression(text)
                divides = divides or is_divisor
    return (_SAFE_TITLE if divides else _ROOT_TITLE, source.changed(changes)) if changes else ("", "")


def _sides(source: Source, decision: cst.If) -> tuple[list[tuple[cst.CSTNode, str]], set[str]]:
    """The sides of an ``if`` with its ``elif``, each with the condition under which it counts; and what these ask about:
    names, and what is at the left of a comparison."""
    sides: list[tuple[cst.CSTNode, str]] = []
    asked, others = set[str](), list[str]()
    one: cst.CSTNode | None = decision
    while isinstance(one, cst.If):
        test = condition_of(source, one.test)
        if test is None:
            return sides, asked
        asked |= {name.value for name in m.findall(one.test, m.Name()) if isinstance(name, cst.Name)}
        compared = [each for each in m.findall(one.test, m.Comparison()) if isinstance(each, cst.Comparison)]
        asked |= {source.code(each.left) for each in compared if not isinstance(each.left, (cst.Integer, cst.Float))}
        sides.append((one.body, " & ".join([*others, tight(test)])))
        others.append(f"~{tight(test)}")
        one = one.orelse
    if isinstance(one, cst.Else):
        sides.append((one.body, " & ".join(others)))
    elif m.findall(decision, m.Return()):
        sides += [(each, " & ".join(others)) for each in source.following(decision)]
    return sides, asked


def _divisors(source: Source, side: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """What a side divides by, and what it takes a root or logarithm of; whether it is the first."""
    for one in m.findall(side, m.BinaryOperation(operator=m.Divide())):
        yield cst.ensure_type(one, cst.BinaryOperation).right, True
    for one in m.findall(side, m.Call(func=m.Attribute())):
        call = cst.ensure_type(one, cst.Call)
        function = cst.ensure_type(call.func, cst.Attribute)
        if function.attr.value not in _ROOTS:
            continue
        if not call.args:
            yield function.value, False
        elif source.full_name(function).startswith("torch.") and call.args[0].keyword is None:
            yield call.args[0].value, False


def _if_around(source: Source, node: cst.If) -> cst.If | None:
    block = source.parent(node)
    one = source.parent(block) if block is not None else None
    if isinstance(one, cst.Else):
        one = source.parent(one)
    while isinstance(outer := source.parent(one) if one is not None else None, cst.If) and outer.orelse is one:
        one = outer
    return one if isinstance(one, cst.If) else None


def _flattened(source: Source, decision: cst.If, torch: str, in_place: bool = False) -> str | None:
    """The text with an ``if``, and what comes after it where it returns, in straight code; None if that is not possible.

    With ``in_place``, what the sides change in place is changed in place: other names of it, and the caller, see it.
    """
    returns = bool(m.findall(decision, m.Return()))
    after = list(source.following(decision)) if returns else []
    flattening = Flattening(source, torch, _bound_before(source, decision))
    try:
        flat = flattening.block([decision, *after], {})
    except (NotPossible, cst.ParserSyntaxError):
        return None
    if returns != (RETURNED in flat.values):
        return None
    values = {name: value for name, value in flat.values.items() if name not in (RETURNED, value)}
    attributes = {name: value for name, value in values.items() if "." in name}
    kept = [name for name in values if name in flattening.in_place and "." not in name]
    if in_place and (returns or not kept or set(kept) & flattening.assigned):
        return None
    if returns:
        lines = [*flat.lines, *_returned(source, flat.values[RETURNED], attributes)]
    elif in_place or attributes:
        lines = [*flat.lines, *_copied(source, values, [*(kept if in_place else ()), *attributes])]
    else:
        lines = [*flat.lines, *_bound(list(values.items()))]
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


def _copied(source: Source, values: dict[str, str], kept: list[str]) -> list[str]:
    """The same where some names keep their tensors: their values are all computed before one of them is written."""
    if len(values) == 1:
        return [f"{kept[0]}.copy_({values[kept[0]]})"]
    made = {name: source.fresh(f"chosen_{name.rpartition('.')[2]}") if name in kept else name for name in values}
    assigned = _bound([(made[name], value) for name, value in values.items()])
    return [*assigned, *(f"{name}.copy_({made[name]})" for name in kept)]


def _returned(source: Source, value: str, attributes: dict[str, str]) -> list[str]:
    """What is returned, computed before tensors of objects change."""
    if not attributes:
        return [f"return {_without_parentheses(value)}"]
    result = source.fresh("result")
    return [*_copied(source, {result: value, **attributes}, list(attributes)), f"return {result}"]


def _without_parentheses(value: str) -> str:
    """``a, b`` of ``(a, b)``."""
    node = cst.parse_expression(value)
    is_pair = isinstance(node, cst.Tuple) and len(node.lpar) == 1 and len(node.elements) > 1
    return cst.Module([]).code_for_node(node.with_changes(lpar=(), rpar=())) if is_pair else value


def _comments(source: Source, nodes: list[cst.BaseStatement]) -> list[str]:
    """The comments inside of the statements that go; those above the first stay where they are."""
    first = {line.comment.value for line in getattr(nodes[0], "leading_lines", ()) if line.comment is not None}
    found = [one.value for node in nodes for one in m.findall(node, m.Comment()) if isinstance(one, cst.Comment)]
    return [text for text in dict.fromkeys(found) if text not in first]


FAMILY = Family("branches", ("graph-break",), _propose, ("GB0170", "GB0124", "GB0033"))
