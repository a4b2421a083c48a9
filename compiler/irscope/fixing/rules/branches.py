"""``if`` and conditional expressions on values of tensors: both sides are computed, and the values are chosen."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Iterator, Sequence

from irscope.fixing.conditions import condition_of, decided, is_flag
from irscope.fixing.edits import statements
from irscope.fixing.model import OF_VALUES, Example, Proposal, Rule
from irscope.fixing.predication import RETURNED, Flattening, bound_before
from irscope.fixing.source import Source, parse_expression, tight
from irscope.protocol import Finding, FixMethod, Range

_TITLE = FixMethod.CHOOSE_BY_VALUE
_SAFE_TITLE = f"{_TITLE.title}, and divide by 1 where a side does not count"
_ROOT_TITLE = f"{_TITLE.title}, and take the root or logarithm of 1 where a side does not count"
_IN_PLACE_TITLE = f"{_TITLE.title}, in place"
_ROOTS = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"})
"""Functions whose gradient at zero is not finite."""
BOTH = "Both sides are computed, and their shapes must broadcast."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch, decision = source.torch, source.first_around(source.at(finding.range), ast.If)
    yield from _of_chain(source, finding, torch)
    if decision is None or source.function(decision) is None:
        return
    around = itertools.takewhile(lambda outer: isinstance(outer, ast.If), source.around(decision))
    whole = [outer for outer in around if isinstance(outer, ast.If) and not source.is_elif(outer)]
    attempts: list[tuple[FixMethod | str, Source, ast.If, bool]] = [(_TITLE, source, outer, False) for outer in whole]
    if safe := _with_safe_divisors(source, whole[0], torch):
        title, again = safe
        attempts += [(title, again, same, False) for same in again.on_line(source.line(whole[0]), ast.If)[:1]]
    attempts.append((_IN_PLACE_TITLE, source, whole[0], True))
    for does, text, outer, in_place in attempts:
        with contextlib.suppress(ValueError):
            straight = flattened(text, outer, torch, in_place)
            if straight is not None:
                yield Proposal(does, BOTH, text.changed({}, [statements(text, *straight)]))


def _of_chain(source: Source, finding: Finding, torch: str) -> Iterator[Proposal]:
    """``a if p else b if q else c``: all of it, since each condition is a break at the same line."""
    chains = source.on_line(finding.range.start.line, ast.IfExp)
    whole = next((chain for chain in chains if not isinstance(source.parent(chain), ast.IfExp)), None)
    if whole is None or source.function(whole) is None or not source.all(ast.IfExp, whole.orelse):
        return
    text = chosen_expression(source, whole, torch)
    if text is not None:
        yield Proposal(_TITLE, BOTH, source.changed({whole: text}))


def chosen_expression(source: Source, node: ast.expr, torch: str) -> str | None:
    """The code of an expression with torch.where in the place of a conditional one; None if a condition is not a tensor's."""
    if not isinstance(node, ast.IfExp):
        return source.code(node)
    test = None if is_flag(node.test) else decided(source, node.test)
    sides = [chosen_expression(source, side, torch) for side in (node.body, node.orelse)]
    return None if test is None or None in sides else f"{torch}.where({test}, {sides[0]}, {sides[1]})"


# --- gradients of the side that does not count ----------------------------------------------------------------------------


def _with_safe_divisors(source: Source, decision: ast.If, torch: str) -> tuple[str, Source] | None:
    """The text with ones in the place of what the condition is about, where its side does not count and divides by it or
    takes its root: the gradients there are infinite at zero, and would make those of the other side NaN.

    Returns a title and the text; None if nothing is divided by.
    """
    sides, asked = _sides(source, decision)
    changes: dict[ast.AST, str | None] = {}
    divides = False
    for side, counts in sides:
        for node, is_divisor in _divisors(source, side):
            code = source.code(node)
            if code in asked:
                changes[node] = f"{torch}.where({counts}, {code}, {torch}.ones_like({code}))"
                divides = divides or is_divisor
    return (_SAFE_TITLE if divides else _ROOT_TITLE, Source(source.changed(changes))) if changes else None


def _sides(source: Source, decision: ast.If) -> tuple[list[tuple[Sequence[ast.stmt], str]], set[str]]:
    """The sides of an ``if`` with its ``elif``, each with the condition under which it counts; and what these ask about:
    names, and what is at the left of a comparison."""
    sides: list[tuple[Sequence[ast.stmt], str]] = []
    asked, others = set[str](), list[str]()
    rest: Sequence[ast.stmt] = [decision]
    while len(rest) == 1 and isinstance(node := rest[0], ast.If) and (node is decision or source.is_elif(node)):
        test = condition_of(source, node.test)
        if test is None:
            return sides, asked
        asked |= {name.id for name in source.all(ast.Name, node.test)}
        lefts = [comparison.left for comparison in source.all(ast.Compare, node.test)]
        asked |= {source.code(left) for left in lefts if not isinstance(left, ast.Constant)}
        sides.append((node.body, " & ".join([*others, tight(test)])))
        others.append(f"~{tight(test)}")
        rest = node.orelse
    if not rest and source.all(ast.Return, decision):
        rest = source.following(decision)
    return [*sides, (rest, " & ".join(others))], asked


def _divisors(source: Source, side: Sequence[ast.stmt]) -> Iterator[tuple[ast.expr, bool]]:
    """What a side divides by, and what it takes a root or logarithm of; whether it is the first."""
    for node in source.all(ast.BinOp, side):
        if isinstance(node.op, ast.Div):
            yield node.right, True
    for call in source.all(ast.Call, side):
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ROOTS:
            continue
        if not call.args and not call.keywords:
            yield call.func.value, False
        elif source.full_name(call.func).startswith("torch.") and call.args:
            yield call.args[0], False


# --- straight code --------------------------------------------------------------------------------------------------------


def flattened(
    source: Source, decision: ast.If, torch: str, in_place: bool = False, replaced: ast.If | None = None
) -> tuple[Range, str] | None:
    """An ``if``, and what comes after it where it returns, as straight code, with the range that it takes the place of.

    None if that is not possible.

    Args:
        in_place: Whether what the sides change in place is changed in place: other names of it, and the caller, see it.
        replaced: The statement of the file, if the decision is a part of it.
    """
    replaced = replaced or decision
    returns = bool(source.all(ast.Return, decision))
    rest = source.following(replaced) if returns else []
    flattening = Flattening(source, torch, bound_before(source, replaced))
    try:
        flat = flattening.block([decision, *rest], {})
        lines = [*flat.lines, *_lines(source, flattening, flat.values, returns, in_place)]
    except ValueError:
        return None
    return (source.range(replaced, *rest), "\n".join(lines)) if lines else None


def _lines(source: Source, flattening: Flattening, results: dict[str, str], returns: bool, in_place: bool) -> list[str]:
    """What gives names the values of straight code, and returns.  Raises ValueError if that is not as the ``if`` does it."""
    if returns != (RETURNED in results):
        raise ValueError("only some ways return")
    values = {name: value for name, value in results.items() if name not in (RETURNED, value)}
    attributes = {name: value for name, value in values.items() if "." in name}
    kept = [name for name in values if name in flattening.in_place and "." not in name]
    if in_place and (returns or not kept or set(kept) & flattening.assigned):
        raise ValueError("nothing can be changed in place")
    if returns:
        return _returned(source, results[RETURNED], attributes)
    if in_place or attributes:
        return _copied(source, values, [*(kept if in_place else ()), *attributes])
    return _bound(values)


def _bound(values: dict[str, str]) -> list[str]:
    """Assignments of all values at once, since one may read the name of another."""
    return [f"{', '.join(values)} = {', '.join(values.values())}"] if values else []


def _copied(source: Source, values: dict[str, str], kept: list[str]) -> list[str]:
    """The same where some names keep their tensors: their values are all computed before one of them is written."""
    if len(values) == 1:
        return [f"{kept[0]}.copy_({values[kept[0]]})"]
    made = {name: source.fresh(f"chosen_{name.rpartition('.')[2]}") if name in kept else name for name in values}
    assigned = _bound({made[name]: value for name, value in values.items()})
    return [*assigned, *(f"{name}.copy_({made[name]})" for name in kept)]


def _returned(source: Source, value: str, attributes: dict[str, str]) -> list[str]:
    """What is returned, computed before tensors of objects change."""
    if attributes:
        result = source.fresh("result")
        return [*_copied(source, {result: value, **attributes}, list(attributes)), f"return {result}"]
    node = parse_expression(value)
    is_pair = isinstance(node, ast.Tuple) and len(node.elts) > 1 and tight(value) == value
    return [f"return {value[1:-1] if is_pair else value}"]


_EXAMPLES = (
    Example(
        "if x.sum() > 0:\n    y = x + 1\nelse:\n    y = x - 1\nreturn y",
        "y = torch.where(x.sum() > 0, x + 1, x - 1)\nreturn y",
    ),
    Example("if x.sum() > 3:\n    return x * 2\nreturn x", "return torch.where(x.sum() > 3, x * 2, x)"),
    Example(
        "n = x.norm()\nif n > 1:\n    x = x / n\nreturn x",
        "n = x.norm()\nx = torch.where(n > 1, x / torch.where((n > 1), n, torch.ones_like(n)), x)\nreturn x",
    ),
)
RULE = Rule("branches", ("graph-break",), _propose, OF_VALUES, examples=_EXAMPLES)
