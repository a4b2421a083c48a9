"""Statements under conditions as statements without: both sides are computed, and the values are chosen (if-conversion)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m

from irscope_server.fixing.choosing import NotPossible, chosen, repeats
from irscope_server.fixing.conditions import decided, is_flag, tight
from irscope_server.fixing.source import Source

RETURNED = "return"
"""The name under which a returned value is kept."""
_MOST_BRANCHES = 8
_PLACE = m.Name() | m.Attribute(value=m.Name() | m.Attribute(value=m.Name()))
"""What a side may change in place: a name, or a tensor of an object, ``self.mean``."""
_IN_PLACE = {"copy_": "{value}", "zero_": "{torch}.zeros_like({place})", "fill_": "{torch}.fill({place}, {value})"}
"""Methods that have no form that is not in place.  What `copy_` copies takes the shape where it is written at last."""
_NOT_PLAIN = ("requires_grad_", "normal_", "uniform_")


@dataclass
class Flat:
    """Straight code: lines to run first, then the value of each changed name, as expressions of names that are known."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


class Flattening:
    """Flattens the statements of one ``if``.

    Parameters
    ----------
    source
        The file.
    torch
        How the file calls torch.
    bound
        The names that have a value before it.
    """

    def __init__(self, source: Source, torch: str, bound: frozenset[str]) -> None:
        self._source, self._torch, self._bound = source, torch, bound
        self._made: set[str] = set()
        self._branches = 0
        self.in_place: set[str] = set()
        """Names, also dotted ones, whose tensors a side changes in place."""
        self.assigned: set[str] = set()
        """Names that a side gives another value."""

    def block(self, body: Sequence[cst.BaseStatement], known: dict[str, str]) -> Flat:
        """Flattens statements.  Raises NotPossible.

        Parameters
        ----------
        known
            Values of names that differ from what the names hold, by name.
        """
        flat = Flat([], dict(known))
        for number, statement in enumerate(body):
            if isinstance(statement, cst.If):
                rest = body[number + 1 :]
                if _returns(statement.body):  # what comes after it is its other side
                    self.decide(flat, statement, rest if statement.orelse is None else None)
                    if statement.orelse is not None and rest:
                        raise NotPossible
                    return flat
                self.decide(flat, statement, None)
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(flat, small)
                if RETURNED in flat.values:
                    return flat
            else:
                raise NotPossible
        return flat

    # --- one statement ------------------------------------------------------------------------------------------------

    def _small(self, flat: Flat, node: cst.BaseSmallStatement) -> None:
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            if not isinstance(target, cst.Subscript):
                self.assigned |= {one.value for one in m.findall(target, m.Name()) if isinstance(one, cst.Name)}
            self._assign(flat, node.targets[0].target, self._text(flat, node.value))
        elif isinstance(node, cst.AugAssign):
            sign = self._source.code(node.operator).strip().removesuffix("=")
            left, right = self._text(flat, node.target), self._text(flat, node.value)
            if isinstance(node.target, cst.Subscript) or not m.matches(node.target, _PLACE):
                self._assign(flat, node.target, f"{tight(left)} {sign} {tight(right)}")
                return
            self.in_place.add(self._source.code(node.target))
            flat.values[self._source.code(node.target)] = f"{tight(left)} {sign} {tight(right)}"
        elif isinstance(node, cst.Return) and node.value is not None:
            flat.values[RETURNED] = _parenthesized(self._text(flat, node.value))
        elif isinstance(node, cst.Expr) and m.matches(node.value, m.Call(func=m.Attribute(value=_PLACE))):
            self._method(flat, node.value)
        elif not isinstance(node, cst.Pass):
            raise NotPossible

    def _assign(self, flat: Flat, target: cst.BaseExpression, value: str) -> None:
        if isinstance(target, cst.Name):
            flat.values[target.value] = value
        elif isinstance(target, cst.Subscript) and m.matches(target.value, _PLACE):
            place = self._source.code(target.value)
            name = self._fresh(f"{place.rpartition('.')[2]}_changed")
            flat.lines.append(f"{name} = {tight(self._text(flat, target.value))}.clone()")
            inside = self._source.code(target)[len(place) :]
            flat.lines.append(f"{name}{inside} = {value}")
            self.in_place.add(place)
            flat.values[place] = name
        elif isinstance(target, cst.Tuple) and all(isinstance(one.value, cst.Name) for one in target.elements):
            names = [self._source.code(one.value) for one in target.elements]
            made = [self._fresh(f"new_{name}") for name in names]
            flat.lines.append(f"{', '.join(made)} = {value}")
            flat.values.update(zip(names, made, strict=True))
        else:
            raise NotPossible

    def _method(self, flat: Flat, node: cst.BaseExpression) -> None:
        """``y.mul_(2)`` as ``y = y.mul(2)``."""
        assert isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
        word, place = node.func.attr.value, self._source.code(node.func.value)
        if not word.endswith("_") or word.startswith("_") or word in _NOT_PLAIN:
            raise NotPossible
        if word in _IN_PLACE:
            if len(node.args) != ("{value}" in _IN_PLACE[word]) or any(arg.keyword or arg.star for arg in node.args):
                raise NotPossible
            value = self._text(flat, node.args[0].value) if node.args else ""
            made = _IN_PLACE[word].format(torch=self._torch, place=self._text(flat, node.func.value), value=value)
        else:
            made = self._text(flat, node.with_changes(func=node.func.with_changes(attr=cst.Name(word[:-1]))))
        self.in_place.add(place)
        flat.values[place] = made

    def named(self, flat: Flat, wanted: str, test: cst.BaseExpression) -> str:
        """The name that a condition gets on a separate line.  Raises NotPossible."""
        code = None if is_flag(test) else decided(self._source, test)
        if code is None:
            raise NotPossible
        code, name = self._replaced(flat, code), self._fresh(wanted)
        flat.lines.append(f"{name} = {code}")
        return name

    # --- a decision ---------------------------------------------------------------------------------------------------

    def decide(self, flat: Flat, node: cst.If, otherwise: Sequence[cst.BaseStatement] | None) -> None:
        """Flattens an ``if``, with these statements as its other side unless None.  Raises NotPossible."""
        self._branches += 1
        test = decided(self._source, node.test)
        if test is None or is_flag(node.test) or self._branches > _MOST_BRANCHES:
            raise NotPossible
        test = self._replaced(flat, test)
        yes = self.block(_body(node.body), flat.values)
        no = self._otherwise(node, flat) if otherwise is None else self.block(otherwise, flat.values)
        changed = [
            name
            for name in dict.fromkeys([*yes.values, *no.values])
            if yes.values.get(name, name) != no.values.get(name, name)
        ]
        local = [name for name in changed if not all(self._has_value(name, side) for side in (yes, no))]
        changed = [name for name in changed if name not in local or name == RETURNED]
        if RETURNED in changed and not (RETURNED in yes.values and RETURNED in no.values):
            raise NotPossible
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
        for name in {*yes.values, *no.values} - {*changed, *local}:
            flat.values[name] = yes.values.get(name, name)

    def _has_value(self, name: str, side: Flat) -> bool:
        """Whether a name has a value after a side; what only one side gives a value is not read after both."""
        return name in side.values or name in self._bound or "." in name

    def _otherwise(self, node: cst.If, flat: Flat) -> Flat:
        if isinstance(node.orelse, cst.If):
            return self.block([node.orelse], flat.values)
        return self.block(_body(node.orelse.body) if node.orelse is not None else [], flat.values)

    # --- texts --------------------------------------------------------------------------------------------------------

    def _text(self, flat: Flat, node: cst.BaseExpression) -> str:
        return self._replaced(flat, self._source.code(node))

    def _replaced(self, flat: Flat, text: str) -> str:
        """An expression with the values of names in the place of the names; a value that is used twice gets a name."""
        parsed = cst.parse_expression(text)
        if m.findall(parsed, m.NamedExpr() | m.Lambda() | m.ListComp() | m.GeneratorExp() | m.Yield() | m.Await()):
            if any(_count(parsed, name) for name in flat.values):
                raise NotPossible
            return text
        for name, value in list(flat.values.items()):
            if name == RETURNED or value == name or not (times := _count(parsed, name)):
                continue
            if times > 1 and not value.isidentifier():
                made = self._fresh(f"new_{name.rpartition('.')[2]}")
                flat.lines.append(f"{made} = {value}")
                flat.values[name] = value = made
        result = parsed.visit(_Names(flat.values))
        assert isinstance(result, cst.BaseExpression)
        return cst.Module([]).code_for_node(result)

    def _fresh(self, wanted: str) -> str:
        name, number = self._source.fresh(wanted), 2
        while name in self._made:
            name, number = self._source.fresh(f"{wanted}_{number}"), number + 1
        self._made.add(name)
        return name


class _Names(cst.CSTTransformer):
    def __init__(self, values: dict[str, str]) -> None:
        super().__init__()
        self._values = values

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        """The word after a dot is not a variable."""

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self._values.get(original_node.value)
        if value is None or value == original_node.value:
            return updated_node
        return cst.parse_expression(tight(value))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return True

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        dotted = cst.Module([]).code_for_node(original_node)
        value = self._values.get(dotted)
        if value is not None and value != dotted:
            return cst.parse_expression(tight(value))
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


def _count(node: cst.CSTNode, name: str) -> int:
    """How often a variable, or an attribute by its dotted name, is read in an expression."""
    if "." in name:
        found = m.findall(node, m.Attribute())
        return sum(cst.Module([]).code_for_node(one) == name for one in found)
    skipped = {
        id(one.attr) if isinstance(one, cst.Attribute) else id(one.keyword)
        for one in m.findall(node, m.Attribute() | m.Arg())
        if isinstance(one, (cst.Attribute, cst.Arg))
    }
    return sum(id(one) not in skipped for one in m.findall(node, m.Name(name)))


def _parenthesized(text: str) -> str:
    """A tuple with its parentheses, so that it can be a part of an expression."""
    node = cst.parse_expression(text)
    return f"({text})" if isinstance(node, cst.Tuple) and not node.lpar else text


def _body(block: cst.BaseSuite) -> list[cst.BaseStatement]:
    if isinstance(block, cst.IndentedBlock):
        return list(block.body)
    assert isinstance(block, cst.SimpleStatementSuite)
    return [cst.SimpleStatementLine(block.body)]


def _returns(block: cst.BaseSuite) -> bool:
    """Whether a block ends with a return, on each of its ways."""
    last = _body(block)[-1] if _body(block) else None
    if isinstance(last, cst.If):
        other = last.orelse
        return _returns(last.body) and other is not None and (
            _returns(other.body)
        )  # fmt: skip
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return)
