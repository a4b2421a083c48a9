"""A user's text as a tree that keeps formatting and comments, and changed texts made from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import libcst as cst
from irscope.protocol import Range
from irscope.usercode import effects
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from irscope_server.fixing.parsing import parse_module

Change = cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]
_Node = TypeVar("_Node", bound=cst.CSTNode)


class Source:
    """One file.  Raises ValueError for a text that is not Python, too long or nested too deeply."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._wrapper = MetadataWrapper(parse_module(text), unsafe_skip_copy=True)
        self.module = self._wrapper.module
        try:
            self._parents = self._wrapper.resolve(ParentNodeProvider)
        except RecursionError:
            raise ValueError("the text is nested too deeply") from None

    @functools.cached_property
    def _positions(self) -> Mapping[cst.CSTNode, tuple[tuple[int, int], tuple[int, int]]]:
        found = self._wrapper.resolve(PositionProvider)
        return {
            node: ((place.start.line, place.start.column), (place.end.line, place.end.column))
            for node, place in found.items()
        }

    # --- finding nodes ------------------------------------------------------------------------------------------------

    def at(self, range: Range) -> cst.CSTNode | None:
        """The largest expression or statement that is inside of a range and begins where it begins; else what is around
        it, the smallest first."""
        start, end = (range.start.line, range.start.column), (range.end.line, range.end.column)
        inside = [
            node
            for node, (first, last) in self._positions.items()
            if first == start and last <= end and isinstance(node, (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement))
        ]  # fmt: skip
        if inside:
            return max(inside, key=lambda node: self._positions[node][1])
        around = [
            node
            for node, (first, last) in self._positions.items()
            if first <= start and end <= last and isinstance(node, (cst.BaseExpression, cst.BaseStatement))
        ]
        return max(around, key=lambda node: self._positions[node][0], default=None)

    def expression(self, range: Range) -> cst.BaseExpression | None:
        """The outermost expression that has exactly a range."""
        place = ((range.start.line, range.start.column), (range.end.line, range.end.column))
        found = (node for node, at in self._positions.items() if at == place and isinstance(node, cst.BaseExpression))
        return next(found, None)

    def statements_in(self, range: Range) -> list[cst.BaseStatement | cst.BaseSmallStatement]:
        """The outermost statements inside of a range, whole lines where it has all that is on them."""
        start, end = (range.start.line, range.start.column), (range.end.line, range.end.column)
        kinds = (cst.BaseStatement, cst.BaseSmallStatement)
        inside = {
            node
            for node, (first, last) in self._positions.items()
            if isinstance(node, kinds) and start <= first and last <= end
        }
        found = [node for node in inside if not any(one in inside for one in self.around(node) if one is not node)]
        return sorted(found, key=lambda node: self._positions[node])

    def line(self, node: cst.CSTNode) -> int:
        """The first line of a node, from 1."""
        return self._positions[node][0][0]

    def first_line(self, node: cst.CSTNode) -> int:
        """The same with the decorators."""
        return min([self.line(node), *(self.line(one) for one in getattr(node, "decorators", ()))])

    def last_line(self, node: cst.CSTNode) -> int:
        """The last line of a node, from 1."""
        return self._positions[node][1][0]

    def on_line(self, line: int, kind: type[_Node]) -> list[_Node]:
        """The nodes of a kind that begin on a line, the outermost first."""
        return [node for node, (first, _) in self._positions.items() if isinstance(node, kind) and first[0] == line]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around a node."""
        return self._parents.get(node)

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """A node and those around it, the innermost first."""
        one: cst.CSTNode | None = node
        while one is not None:
            yield one
            one = self._parents.get(one)

    def first_around(self, node: cst.CSTNode, kind: type[_Node] | tuple[type[_Node], ...]) -> _Node | None:
        """The innermost node of a kind that a node is or is in."""
        return next((one for one in self.around(node) if isinstance(one, kind)), None)

    def statement(self, node: cst.CSTNode) -> cst.BaseStatement | None:
        """The statement that a node is or is in."""
        return self.first_around(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost function around a node."""
        return self.first_around(node, cst.FunctionDef)

    def following(self, statement: cst.CSTNode) -> Sequence[cst.BaseStatement]:
        """The statements after one in its block."""
        block = self.parent(statement)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return ()
        body = [one for one in block.body if isinstance(one, cst.BaseStatement)]
        return body[next(n for n, one in enumerate(body) if one is statement) + 1 :]

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.module.code_for_node(node)

    def can_be_left_out(self, statement: cst.CSTNode) -> bool:
        """Whether all that a statement does is output: only that may be left out while compiling."""
        return effects.can_be_left_out(self.text, self.line(statement))

    # --- names --------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Every name in the file."""
        return frozenset(node.value for node in self._positions if isinstance(node, cst.Name))

    def fresh(self, wanted: str) -> str:
        """A name that the file does not have."""
        name, number = wanted, 2
        while name in self.names:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def module_name(self, module: str) -> str | None:
        """How the file calls an imported module: ``np`` for ``numpy``."""
        for node in self._positions:
            if isinstance(node, cst.Import):
                for alias in node.names:
                    if self.code(alias.name) == module:
                        return self.code(alias.asname.name) if alias.asname is not None else module
        return None

    def full_name(self, node: cst.CSTNode) -> str:
        """The dotted name of an expression, with imported names as they are called where they come from."""
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return ""
        dotted = self.code(node)
        head, dot, rest = dotted.partition(".")
        return f"{self._imported.get(head, head)}{dot}{rest}"

    @functools.cached_property
    def _imported(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for node in self._positions:
            if isinstance(node, cst.Import):
                for alias in node.names:
                    if alias.asname is not None:
                        found[self.code(alias.asname.name)] = self.code(alias.name)
            elif (
                isinstance(node, cst.ImportFrom)
                and node.module is not None
                and not isinstance(node.names, cst.ImportStar)
            ):
                for alias in node.names:
                    name = self.code(alias.asname.name) if alias.asname is not None else self.code(alias.name)
                    found[name] = f"{self.code(node.module)}.{self.code(alias.name)}"
        return found

    @functools.cached_property
    def imported_names(self) -> frozenset[str]:
        """The names that imports bind anywhere in the file."""
        found = set(self._imported)
        for node in self._positions:
            if isinstance(node, cst.Import):
                found |= {self.code(alias.name).partition(".")[0] for alias in node.names if alias.asname is None}
        return frozenset(found)

    @functools.cached_property
    def constants(self) -> frozenset[str]:
        """Names in capitals that the file assigns once, at its top level."""
        names: list[str] = []
        for one in self.module.body:
            for small in one.body if isinstance(one, cst.SimpleStatementLine) else ():
                if isinstance(small, cst.Assign):
                    names += [self.code(each.target) for each in small.targets]
        return frozenset(name for name in names if name.isupper() and names.count(name) == 1)

    # --- changed texts ------------------------------------------------------------------------------------------------

    def changed(self, changes: Mapping[cst.CSTNode, Change]) -> str:
        """The text with nodes in the place of others."""
        return self.module.visit(_Changing(changes)).code

    def changed_by(self, node: _Node, change: Callable[[_Node], Change]) -> str:
        """The text with one node changed."""
        return self.changed({node: change(node)})


class _Changing(cst.CSTTransformer):
    def __init__(self, changes: Mapping[cst.CSTNode, Change]) -> None:
        super().__init__()
        self._changes = changes

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self._changes

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Change:  # type: ignore[override]
        return self._changes.get(original_node, updated_node)


def statements(text: str) -> list[cst.BaseStatement]:
    """The statements of a text, with the comments above the first."""
    parsed = parse_module(text)
    made: list[cst.BaseStatement] = [one for one in parsed.body if isinstance(one, cst.BaseStatement)]
    if made and parsed.header:
        made[0] = made[0].with_changes(leading_lines=[*parsed.header, *getattr(made[0], "leading_lines", ())])
    return made


def in_place_of(old: cst.CSTNode, text: str) -> Change:
    """The statements of a text, with the comments and empty lines that are above the statement they replace."""
    made = statements(text)
    above = getattr(old, "leading_lines", ())
    if made and above:
        made[0] = made[0].with_changes(leading_lines=[*above, *getattr(made[0], "leading_lines", ())])
    if isinstance(old, cst.SimpleStatementLine) and made and isinstance(made[-1], cst.SimpleStatementLine):
        made[-1] = made[-1].with_changes(trailing_whitespace=old.trailing_whitespace)
    return cst.FlattenSentinel(made) if made else cst.RemoveFromParent()
