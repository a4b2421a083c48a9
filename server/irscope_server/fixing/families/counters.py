"""A number of an object that changes from call to call, as a counter or a schedule: read and counted by a plain function.

The attribute stays a Python number.  The function keeps its name, counts, and passes what is computed of the number to the
rest, which is compiled, as a tensor; what is decided by it is passed as a truth value.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.families.numbers import changed_number
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source
from irscope_server.fixing.splitting import can_be_split, is_method, with_before

_COUNT = "Count before the compiled code"
_PASS = "Compute the number before the compiled code, and pass it as a tensor"
_TYPED = f"{_PASS} of the same type as `{{}}`"
_CAVEAT = "A plain function runs around the compiled one."
_TENSOR = f"{_CAVEAT} Code that needs a Python number then breaks the graph."
_FUNCTIONS = frozenset({"min", "max", "abs", "float", "int", "round"})
_OPERATIONS = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.BooleanOperation, cst.Call)
_STATEMENT = m.SimpleStatementLine(body=[m.AugAssign(target=m.Attribute(value=m.Name()))])


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    number, torch = changed_number(finding), source.module_name("torch")
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    if number is None or torch is None or function is None or not can_be_split(source, function):
        return
    counts = _counts(source, function)
    names = {number.source, *counts}
    if number.source.count(".") != 1 or not _is_kept(source, function, names, counts):
        return
    changes: dict[cst.CSTNode, Change] = {one: cst.RemoveFromParent() for one in counts.values()}
    passed: dict[str, str] = {}
    named: dict[str, str] = {}
    for read in _reads(source, function, names):
        if any(source.line(one) > source.line(read) for one in counts.values()):
            return  # it is read before it is counted
        code = source.code(read.with_changes(lpar=(), rpar=()))
        if code not in named:
            named[code] = source.fresh(f"{_name(read)}_{len(named) + 1}" if named else _name(read))
            passed[named[code]] = _passed(source, read, code, torch, number.number)
        changes[read] = cst.Name(named[code])
    lines = [source.code(one).strip("\n") for one in counts.values()]
    if passed or counts:
        text = with_before(source, function, torch, lines, passed, changes)
        yield Proposal(_PASS if passed else _COUNT, _TENSOR if passed else _CAVEAT, text)
    given = [one.name.value for one in function.params.params][is_method(source, function) :]
    wide = f", dtype={torch}.float64)"
    if given and any(wide in one for one in passed.values()):  # it would widen another tensor of one element
        typed = {name: one.replace(wide, f", dtype={given[0]}.dtype)") for name, one in passed.items()}
        yield Proposal(_TYPED.format(given[0]), _TENSOR, with_before(source, function, torch, lines, typed, changes))


def _counts(source: Source, function: cst.FunctionDef) -> dict[str, cst.SimpleStatementLine]:
    """The statements that add a constant to a number of an object in each call: ``self.step += 1``; by what they count."""
    assert isinstance(function.body, cst.IndentedBlock)
    found: dict[str, cst.SimpleStatementLine] = {}
    for one in function.body.body:
        if m.findall(one, m.Return() | m.Raise()):
            break  # what follows is not done in each call
        if isinstance(one, cst.SimpleStatementLine) and m.matches(one, _STATEMENT):
            added = cst.ensure_type(one.body[0], cst.AugAssign)
            if isinstance(added.value, (cst.Integer, cst.Float)):
                found[source.code(added.target)] = one
    return found


def _is_kept(
    source: Source, function: cst.FunctionDef, names: set[str], counts: dict[str, cst.SimpleStatementLine]
) -> bool:
    """Whether nothing else in the function assigns the numbers or the objects that have them, which are its own or the
    file's."""
    own = function.params.params[0].name.value if is_method(source, function) and function.params.params else ""
    places = m.findall(function.body, m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.AsName())
    targets = [source.code(one.name if isinstance(one, cst.AsName) else one.target) for one in places]  # type: ignore[attr-defined]
    local = {one.name.value for one in function.params.params} - {own}
    heads = {name.partition(".")[0] for name in names}
    counted = [target for target in targets if target in names]
    return sorted(counted) == sorted(counts) and not heads & {*local, *targets}


def _reads(source: Source, function: cst.FunctionDef, names: set[str]) -> list[cst.BaseExpression]:
    """The largest expressions that are computed of the numbers, and of constants, alone."""
    found: list[cst.BaseExpression] = []
    for one in m.findall(function.body, m.Attribute(value=m.Name())):
        assert isinstance(one, cst.Attribute)
        if source.code(one) not in names or isinstance(source.parent(one), (cst.AugAssign, cst.AssignTarget)):
            continue
        largest: cst.BaseExpression = one
        for outer in source.around(one):
            if isinstance(outer, cst.BaseExpression) and not _is_plain(source, outer, names):
                break
            if isinstance(outer, cst.BaseExpression):
                largest = outer
            elif not isinstance(outer, (cst.Arg, cst.ComparisonTarget)):
                break
        if largest not in found:
            found.append(largest)
    return found


def _is_plain(source: Source, node: cst.BaseExpression, names: set[str]) -> bool:
    """Whether an expression is arithmetic of numbers, as far as its text says so."""
    if isinstance(node, cst.Attribute):
        return source.code(node) in names or _is_set_once(source, node)
    if isinstance(node, cst.Name):
        return node.value in source.constants
    if isinstance(node, cst.Call):
        name = source.full_name(node.func)
        known = name in _FUNCTIONS or name.startswith("math.")
        return known and all(not arg.star and _is_plain(source, arg.value, names) for arg in node.args)
    if isinstance(node, _OPERATIONS):
        parts = [one for child in node.children for one in (child, *child.children)]
        inner = [one for one in parts if isinstance(one, cst.BaseExpression) and one in node.children]
        compared = [one.comparator for one in node.children if isinstance(one, cst.ComparisonTarget)]
        return all(_is_plain(source, one, names) for one in (*inner, *compared))
    return isinstance(node, (cst.Integer, cst.Float))


def _is_set_once(source: Source, node: cst.Attribute) -> bool:
    """Whether it is a setting: ``self.warmup``, which only the constructor assigns, a number or what it was given."""
    target = m.AssignTarget(target=m.Attribute(attr=m.Name(node.attr.value)))
    assigned = m.findall(source.module, m.Assign(targets=[target]) | m.AugAssign(target=target.target))
    if len(assigned) != 1 or not isinstance(assigned[0], cst.Assign) or not m.matches(node.value, m.Name()):
        return False
    function = source.function(assigned[0])
    plain = isinstance(assigned[0].value, (cst.Integer, cst.Float, cst.Name))
    return plain and function is not None and function.name.value == "__init__"


def _name(read: cst.BaseExpression) -> str:
    """A name for what is passed."""
    word = cst.ensure_type(next(iter(m.findall(read, m.Attribute()))), cst.Attribute).attr.value
    return word if isinstance(read, cst.Attribute) else f"from_{word}"


def _passed(source: Source, read: cst.BaseExpression, code: str, torch: str, was: str) -> str:
    """What is passed: a truth value, or a tensor of one element, with which other tensors keep their types."""
    if isinstance(read, (cst.Comparison, cst.BooleanOperation)) or m.matches(read, m.UnaryOperation(operator=m.Not())):
        return code
    settings = [one for one in m.findall(read, m.Attribute()) if isinstance(one, cst.Attribute)]
    odd = m.findall(read, m.Divide() | m.Float() | m.Power() | m.Call(func=m.Name("float") | m.Attribute()))
    is_int = was.lstrip("-").isdigit() and not odd and len({source.code(one) for one in settings}) == 1
    return f"{torch}.tensor({code})" if is_int else f"{torch}.tensor({code}, dtype={torch}.float64)"


FAMILY = Family("counters", ("recompilation",), _propose, ("recompile-value",))
