"""Statements under conditions as statements without: both sides are computed, and the values are chosen (if-conversion)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.fixing.choosing import chosen, repeats
from irscope.fixing.conditions import decided, is_flag
from irscope.fixing.edits import dedented
from irscope.fixing.source import Source, parse_expression, tight, whole
from irscope.usercode.bindings import dotted

RETURNED = "return"
"""The name under which a returned value is kept."""
_MOST_BRANCHES = 8
_DEEPEST_PLACE = 2
_IN_PLACE = {"copy_": "{value}", "zero_": "{torch}.zeros_like({place})", "fill_": "{torch}.fill({place}, {value})"}
"""Methods that have no form that is not in place.  What `copy_` copies takes the shape where it is written at last."""
_NOT_PLAIN = ("requires_grad_", "normal_", "uniform_")
_OWN_NAMES = (ast.NamedExpr, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Await)
"""Expressions in which names may stand for something else, or that are not computed twice."""


@dataclass
class Flat:
    """Straight code: lines to run first, then the value of each changed name, as expressions of names that are known."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


class Flattening:
    """Flattens the statements of one ``if``.  Its methods raise ValueError for what cannot be written without a branch.

    Args:
        source: The file.
        torch: How the file calls torch.
        bound: The names that have a value before it.
    """

    def __init__(self, source: Source, torch: str, bound: frozenset[str]) -> None:
        self._source, self._torch, self._bound = source, torch, bound
        self._made: set[str] = set()
        self._branches = 0
        self.in_place: set[str] = set()
        """Names, also dotted ones, whose tensors a side changes in place."""
        self.assigned: set[str] = set()
        """Names that a side gives another value."""

    def block(self, body: Sequence[ast.stmt], known: dict[str, str]) -> Flat:
        """Flattens statements.

        Args:
            known: Values of names that differ from what the names hold, by name.
        """
        flat = Flat([], dict(known))
        for number, statement in enumerate(body):
            if isinstance(statement, ast.If):
                rest = body[number + 1 :]
                if not _returns(statement.body):
                    self.decide(flat, statement, statement.orelse)
                    continue
                self.decide(flat, statement, statement.orelse or rest)  # what comes after a return is its other side
                if statement.orelse and rest:
                    raise ValueError("what comes after both sides is not known")
                return flat
            self._statement(flat, statement)
            if RETURNED in flat.values:
                return flat
        return flat

    # --- one statement ------------------------------------------------------------------------------------------------

    def _statement(self, flat: Flat, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                if not isinstance(target, ast.Subscript):
                    self.assigned |= {name.id for name in self._source.all(ast.Name, target)}
                self._assign(flat, target, self._text(flat, value))
            case ast.AugAssign(target=target, value=added):
                between = self._source.text[self._source.span(target)[1] : self._source.span(added)[0]]
                sign = between.partition("=")[0].strip()
                result = f"{tight(self._text(flat, target))} {sign} {tight(self._text(flat, added))}"
                if _is_place(target):
                    self.in_place.add(dotted(target))
                    flat.values[dotted(target)] = result
                else:
                    self._assign(flat, target, result)
            case ast.Return(value=ast.expr() as value):
                result = self._text(flat, value)
                flat.values[RETURNED] = tight(result) if isinstance(value, ast.Tuple) else result
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method) as call):
                self._method(flat, call, method)
            case ast.Pass():
                pass
            case _:
                raise ValueError("a statement cannot be chosen by value")

    def _assign(self, flat: Flat, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            flat.values[target.id] = value
        elif isinstance(target, ast.Subscript) and _is_place(target.value):
            place = dotted(target.value)
            name = self._fresh(f"{place.rpartition('.')[2]}_changed")
            flat.lines.append(f"{name} = {tight(self._text(flat, target.value))}.clone()")
            flat.lines.append(f"{self._source.code(target, {target.value: name})} = {value}")
            self.in_place.add(place)
            flat.values[place] = name
        elif isinstance(target, ast.Tuple):
            names = [element.id for element in target.elts if isinstance(element, ast.Name)]
            if len(names) != len(target.elts):
                raise ValueError("what is assigned is not only names")
            made = [self._fresh(f"new_{name}") for name in names]
            flat.lines.append(f"{', '.join(made)} = {value}")
            flat.values.update(zip(names, made, strict=True))
        else:
            raise ValueError("what is assigned is not a name")

    def _method(self, flat: Flat, node: ast.Call, method: ast.Attribute) -> None:
        """``y.mul_(2)`` as ``y = y.mul(2)``."""
        word, place = method.attr, dotted(method.value)
        if not _is_place(method.value) or not word.endswith("_") or word.startswith("_") or word in _NOT_PLAIN:
            raise ValueError("a call may do more than change a tensor")
        if word in _IN_PLACE:
            has_star = any(isinstance(argument, ast.Starred) for argument in node.args)
            if len(node.args) != ("{value}" in _IN_PLACE[word]) or node.keywords or has_star:
                raise ValueError("what a method is given is not known")
            value = self._text(flat, node.args[0]) if node.args else ""
            made = _IN_PLACE[word].format(torch=self._torch, place=self._text(flat, method.value), value=value)
        else:
            made = self._replaced(flat, self._source.code(node, {method: f"{place}.{word[:-1]}"}))
        self.in_place.add(place)
        flat.values[place] = made

    def named(self, flat: Flat, wanted: str, test: ast.expr) -> str:
        """The name that a condition gets on a separate line."""
        code = self._replaced(flat, self._condition(test))
        name = self._fresh(wanted)
        flat.lines.append(f"{name} = {code}")
        return name

    def _condition(self, test: ast.expr) -> str:
        code = None if is_flag(test) else decided(self._source, test)
        if code is None:
            raise ValueError("the condition is not about tensors")
        return self._as_part(test, code)

    def _as_part(self, node: ast.expr, code: str) -> str:
        """The code of an expression with parentheses if it is on several lines without any; and without indentation."""
        statement = self._source.statement(node)
        if "\n" not in code or statement is None:
            return code
        column = self._source.range(statement).start.column
        return dedented(whole(code), " " * column)

    # --- a decision ---------------------------------------------------------------------------------------------------

    def decide(self, flat: Flat, node: ast.If, otherwise: Sequence[ast.stmt]) -> None:
        """Flattens an ``if``, with these statements as its other side."""
        self._branches += 1
        if self._branches > _MOST_BRANCHES:
            raise ValueError("there are too many branches")
        test = self._replaced(flat, self._condition(node.test))
        yes, no = self.block(node.body, flat.values), self.block(otherwise, flat.values)
        names = dict.fromkeys([*yes.values, *no.values])
        changed = [name for name in names if yes.values.get(name, name) != no.values.get(name, name)]
        # What only one side gives a value is not read after both.
        one_sided = [name for name in changed if name not in yes.values or name not in no.values]
        local = [name for name in one_sided if name not in self._bound and "." not in name]
        changed = [name for name in changed if name not in local or name == RETURNED]
        if RETURNED in changed and not (RETURNED in yes.values and RETURNED in no.values):
            raise ValueError("only one side returns")
        if RETURNED in changed:  # names are gone then, but objects keep what was done to them
            changed = [name for name in changed if name == RETURNED or "." in name]
        pairs = [[side.values.get(name, name) for side in (yes, no)] for name in changed]
        made = [chosen(self._torch, test, *pair) for pair in pairs]
        again = len(changed) > 1 or bool(yes.lines or no.lines) or any(map(repeats, made))
        if again and not test.isidentifier():
            name = self._fresh("chosen")
            flat.lines.append(f"{name} = {test}")
            made = [chosen(self._torch, name, *pair) for pair in pairs]
        flat.lines += [*yes.lines, *no.lines]
        flat.values.update(zip(changed, made, strict=True))
        for name in names.keys() - {*changed, *local}:
            flat.values[name] = yes.values.get(name, name)

    # --- texts --------------------------------------------------------------------------------------------------------

    def _text(self, flat: Flat, node: ast.expr) -> str:
        return self._replaced(flat, self._as_part(node, self._source.code(node)))

    def _replaced(self, flat: Flat, text: str) -> str:
        """An expression with the values of names in the place of the names; a value that is used twice gets a name."""
        if not any(name in text for name in flat.values):
            return text  # as most are: the rest takes its time
        source, reads = Source(text), dict[str, list[ast.expr]]()
        for node in source.all((ast.Name, ast.Attribute)):
            reads.setdefault(dotted(node), []).append(node)
        places = {name: reads[name] for name in flat.values if name in reads}
        if places and source.all(_OWN_NAMES):
            raise ValueError("names may stand for something else")
        changes: dict[ast.AST, str | None] = {}
        for name, nodes in places.items():
            value = flat.values[name]
            if len(nodes) > 1 and value != name and not value.isidentifier():
                made = self._fresh(f"new_{name.rpartition('.')[2]}")
                flat.lines.append(f"{made} = {value}")
                flat.values[name] = value = made
            changes |= dict.fromkeys(nodes, tight(value)) if value != name else {}
        replaced = source.changed(changes)
        parse_expression(replaced)  # before Python 3.12, formatted strings do not take every expression
        return replaced

    def _fresh(self, wanted: str) -> str:
        name = self._source.fresh(wanted, self._made)
        self._made.add(name)
        return name


def bound_before(source: Source, node: ast.stmt) -> frozenset[str]:
    """The names that have a value when a statement begins: arguments, and what is assigned on the lines above it."""
    function = source.function(node)
    if function is None:
        return frozenset()
    assigned = [name.id for name in assignments(source, function.body) if source.line(name) < source.line(node)]
    return frozenset([*(argument.arg for argument in source.all(ast.arg, function.args)), *assigned])


def assignments(source: Source, below: ast.AST | Sequence[ast.AST]) -> list[ast.Name]:
    """Where names are assigned; those of comprehensions are their own."""
    names = [name for name in source.all(ast.Name, below) if isinstance(name.ctx, ast.Store)]
    return [name for name in names if isinstance(source.first_around(name, (ast.stmt, ast.comprehension)), ast.stmt)]


def _is_place(node: ast.expr) -> bool:
    """Whether a side may change it in place: a name, or a tensor of an object, ``self.mean``."""
    return bool(dotted(node)) and dotted(node).count(".") <= _DEEPEST_PLACE


def _returns(block: Sequence[ast.stmt]) -> bool:
    """Whether a block ends with a return, on each of its ways."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return)
