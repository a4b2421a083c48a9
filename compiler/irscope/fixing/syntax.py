"""A text with its syntax, by the standard library: nodes and their exact places.

Places are offsets of characters, or `Range` with columns of characters; those of `ast` are bytes of UTF-8.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import functools
import io
import itertools
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from typing import TypeVar

from irscope.protocol import Position, Range

MOST_CHARACTERS = 300_000
"""How long a text may be that rules are asked about."""
_DEEPEST = 150
"""How deep a text may be nested."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Node = TypeVar("Node", bound=ast.AST)
_FAILS = (SyntaxError, ValueError, RecursionError, MemoryError)


class Syntax:
    """One file.  Raises ValueError for a text that is not Python, too long or nested too deeply."""

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        module = tree or parsed(text)
        assert isinstance(module, ast.Module)
        self.text, self.tree = text, module
        self.lines = text.split("\n")
        self._starts = list(itertools.accumulate((len(line) + 1 for line in self.lines), initial=0))
        self.nodes = list(ast.walk(self.tree))
        self._parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    # --- places -------------------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends, as offsets; a definition begins with its decorators, an expression inside of
        parentheses of its own.

        Raises ValueError if Python does not say it, as in some formatted strings before 3.12.
        """
        if isinstance(node, ast.Module):
            return 0, len(self.text)
        if isinstance(node, ast.comprehension):
            start = self.text.rfind("for", 0, self.span(node.target)[0])
            return start, max(self.span(part)[1] for part in (node.iter, *node.ifs))
        if not hasattr(node, "lineno"):
            spans = [self.span(child) for child in ast.iter_child_nodes(node) if _has_place(child)]
            return min(start for start, _ in spans), max(end for _, end in spans)
        start, end = self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        if decorators := getattr(node, "decorator_list", None):
            start = self.text.rfind("@", 0, self.span(decorators[0])[0])
        if self._is_in_string(node) and not _is_same(node, self.text[start:end]):
            raise ValueError("the place of an expression in a formatted string is not known")
        return start, end

    def _offset(self, line: int, byte: int) -> int:
        text = self.lines[line - 1]
        if not text.isascii():
            byte = len(text.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "replace"))
        return self._starts[line - 1] + byte

    def _is_in_string(self, node: ast.AST) -> bool:
        parts = (ast.FormattedValue, ast.Constant, ast.JoinedStr)  # before 3.12 they have the place of the whole string
        if not isinstance(node, ast.expr) or isinstance(node, parts):
            return False
        return any(isinstance(outer, ast.JoinedStr) for outer in self.around(node))

    def position(self, offset: int) -> Position:
        """The line and column of an offset."""
        line = bisect.bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1])

    def offset(self, position: Position) -> int:
        """The offset of a position; the end of the text, if it is beyond it."""
        if position.line >= len(self._starts):
            return len(self.text)
        return min(self._starts[position.line - 1] + position.column, len(self.text))

    def range(self, *nodes: ast.AST) -> Range:
        """From the beginning of the first of some nodes to the end of the last."""
        return Range(self.position(self.span(nodes[0])[0]), self.position(self.span(nodes[-1])[1]))

    def line(self, node: ast.AST) -> int:
        """The first line of a node, from 1, without its decorators."""
        return node.lineno if hasattr(node, "lineno") else self.position(self.span(node)[0]).line

    def first_line(self, node: ast.AST) -> int:
        """The same with the decorators."""
        return self.position(self.span(node)[0]).line

    def last_line(self, node: ast.AST) -> int:
        """The last line of a node, from 1."""
        return self.position(self.span(node)[1]).line

    # --- nodes --------------------------------------------------------------------------------------------------------

    def at(self, range: Range) -> ast.expr | ast.stmt | None:
        """The largest expression or statement that is inside of a range and begins where it begins; else the smallest
        around it."""
        start, end = self.offset(range.start), self.offset(range.end)
        spans = {node: self._place(node) for node in self.nodes if isinstance(node, (ast.expr, ast.stmt))}
        inside = [node for node, (first, last) in spans.items() if first == start and last <= end]
        if inside:
            return max(inside, key=lambda node: spans[node][1])
        around = [node for node, (first, last) in spans.items() if first <= start and end <= last]
        return min(around, key=lambda node: spans[node][1] - spans[node][0], default=None)

    def _place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The span of an expression or a statement, without decorators."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno or 0, node.end_col_offset or 0)

    def on_line(self, line: int, kind: type[Node]) -> list[Node]:
        """The nodes of a kind that begin on a line, the outermost first."""
        return [node for node in self.nodes if isinstance(node, kind) and getattr(node, "lineno", 0) == line]

    def all(
        self, kind: type[Node] | tuple[type[Node], ...], below: ast.AST | Sequence[ast.AST] | None = None
    ) -> list[Node]:
        """The nodes of a kind in the file, or in one or several nodes, in the order of the text."""
        roots = [below] if isinstance(below, ast.AST) else below
        nodes = self.nodes if roots is None else [node for root in roots for node in ast.walk(root)]
        placed = [node for node in nodes if isinstance(node, kind)]
        return sorted(placed, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def parent(self, node: ast.AST | None) -> ast.AST | None:
        """The node directly around a node; None for the module and for None."""
        return self._parents.get(node) if node is not None else None

    def around(self, node: ast.AST | None) -> Iterator[ast.AST]:
        """A node and those around it, the innermost first; nothing around None."""
        while node is not None:
            yield node
            node = self._parents.get(node)

    def first_around(self, node: ast.AST | None, kind: type[Node] | tuple[type[Node], ...]) -> Node | None:
        """The innermost node of a kind that a node is or is in."""
        return next((outer for outer in self.around(node) if isinstance(outer, kind)), None)

    def function_at(self, range: Range) -> Function:
        """The innermost function around a range.  Raises ValueError if there is none."""
        function = self.function(self.at(range))
        if function is None:
            raise ValueError("it is not in a function")
        return function

    def statement(self, node: ast.AST | None) -> ast.stmt | None:
        """The innermost statement that a node is or is in."""
        return self.first_around(node, ast.stmt)

    def function(self, node: ast.AST | None) -> Function | None:
        """The innermost function that a node is or is in."""
        return next((outer for outer in self.around(node) if isinstance(outer, Function)), None)

    def top_statement(self, node: ast.AST | None) -> ast.stmt | None:
        """The statement of the module that a node is or is in."""
        return next((outer for outer in self.around(node) if self.parent(outer) is self.tree), None)  # type: ignore[return-value]

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which one is."""
        for _, field in ast.iter_fields(self.parent(statement) or self.tree):
            if isinstance(field, list) and statement in field:
                return field
        return [statement]

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements after one in its block."""
        block = self.block(statement)
        return block[block.index(statement) + 1 :]

    def is_elif(self, node: ast.AST) -> bool:
        """Whether an ``if`` is written as an ``elif``."""
        return isinstance(node, ast.If) and self.text.startswith("elif", self.span(node)[0])

    # --- tokens -------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        """The tokens of the text."""
        return tokens_of(self.text)

    @functools.cached_property
    def indentation(self) -> str:
        """What each block of the text is indented by."""
        return next((token.string for token in self.tokens if token.type == tokenize.INDENT), "    ")


def is_simple(statement: ast.stmt) -> bool:
    """Whether a statement has no blocks."""
    return not hasattr(statement, "body") and not isinstance(statement, ast.Match)


def is_number(node: ast.AST) -> bool:
    """Whether an expression is an integer or a float that is written out."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a text alone."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def tokens_of(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of a text; those before its first error."""
    tokens: list[tokenize.TokenInfo] = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        tokens.extend(tokenize.generate_tokens(io.StringIO(text).readline))
    return tokens


def parsed(text: str, mode: str = "exec") -> ast.AST:
    """The tree of a text.  Raises ValueError for one that is not Python, too long or nested too deeply."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError("the text is too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's text are not for our stderr
            tree: ast.AST = ast.parse(text, mode=mode)
    except _FAILS as error:
        raise ValueError(f"the text is not valid Python: {type(error).__name__}") from None
    if _is_deep(tree):
        raise ValueError("the text is nested too deeply")
    return tree


def _is_deep(tree: ast.AST) -> bool:
    """Whether what follows a tree by calls of itself, as `ast.unparse` does, may come to the end of Python's stack."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _has_place(node: ast.AST) -> bool:
    return hasattr(node, "lineno") or any(map(_has_place, ast.iter_child_nodes(node)))


def _is_same(node: ast.AST, text: str) -> bool:
    try:
        return ast.dump(ast.parse(f"({text}\n)", mode="eval").body) == ast.dump(node)
    except _FAILS:
        return False
