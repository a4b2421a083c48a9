"""The line at hand: its syntax, the names around it, and changes of it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import itertools
import re
from collections.abc import Iterator

from irscope.events.break_message import BreakMessage
from irscope.fixing.advice.model import BreakContext
from irscope.fixing.source import Changes, Source, bound_names, loaded_names, source_of_file, tight
from irscope.protocol import Edit

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_NO_MESSAGE = BreakMessage("", "", (), "", "", None)


class Spot:
    """A break's place in the syntax tree, with what the rules ask of it."""

    def __init__(self, context: BreakContext, home: Spot | None = None) -> None:
        self.context = context
        self.home = home or self
        """The place in the user's file; another one than this where this is in a library."""
        self.node = context.node
        self.cause = context.messages[0] if context.messages else _NO_MESSAGE

    @functools.cached_property
    def source(self) -> Source:
        """The text of the file; empty if it cannot be parsed."""
        return source_of_file(self.context.file) or Source("")

    # --- the tree around the node -------------------------------------------------------------------------------------

    @functools.cached_property
    def statement(self) -> ast.stmt | None:
        """The innermost statement that holds the node, or is it."""
        return self.source.statement(self.node)

    @functools.cached_property
    def functions(self) -> list[Function]:
        """The functions around the node, innermost first."""
        return [outer for outer in self.source.around(self.source.parent(self.node)) if isinstance(outer, Function)]

    @functools.cached_property
    def expression(self) -> ast.expr | None:
        """The node as an expression: an expression statement's value; the called thing's call."""
        node = self.node.value if isinstance(self.node, ast.Expr) else self.node
        call = self.source.parent(node)
        if isinstance(node, ast.Attribute) and isinstance(call, ast.Call) and call.func is node:
            return call
        return node if isinstance(node, ast.expr) else None

    @functools.cached_property
    def call(self) -> ast.Call | None:
        """The call that broke."""
        return self.expression if isinstance(self.expression, ast.Call) else None

    @property
    def called(self) -> str:
        """The full name of what is called; empty if nothing is, or if it has no name."""
        return self.source.full_name(self.call.func) if self.call is not None else ""

    @property
    def alone(self) -> bool:
        """Whether the expression is its own statement, so that its value is not used."""
        return isinstance(self.statement, ast.Expr) and self.statement.value is self.expression

    def methods(self, call: ast.Call | None) -> Iterator[ast.Call]:
        """A call, and the methods of its result that are called at once: ``open(path).read()`` for ``open(path)``."""
        while isinstance(call, ast.Call):
            yield call
            attribute = self.source.parent(call)
            outer = self.source.parent(attribute) if isinstance(attribute, ast.Attribute) else None
            call = outer if isinstance(outer, ast.Call) and outer.func is attribute else None

    # --- text ---------------------------------------------------------------------------------------------------------

    def text(self, node: ast.AST | None) -> str:
        """A node's source; on one line, if it is an expression.  A node that a rule made is written out."""
        text = self.source.code(node) if node is not None else ""
        return ast.unparse(node) if isinstance(node, ast.expr) and "\n" in text else text

    def tight(self, node: ast.expr) -> str:
        """An expression's source, in parentheses where something after a dot needs them."""
        is_number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
        return f"({self.text(node)})" if is_number else tight(self.text(node))

    def short(self, node: ast.AST | None) -> str:
        """A node's source for a sentence, in backticks."""
        if node is None:
            return "this"
        text = self.text(node) if isinstance(node, ast.expr) else self.text(node).split("\n")[0]
        return f"`{text if len(text) <= 70 else text[:67].rstrip() + '…'}`"

    def line_with(self, node: ast.expr, text: str) -> str:
        """The line of an expression with another in its place, to be shown; only that where the line is long."""
        statement = self.source.statement(node)
        if statement is None or not self.source.first_line(statement) == node.lineno == node.end_lineno:
            return text
        return self.source.code(statement, {node: text}).partition("\n")[0]

    # --- names --------------------------------------------------------------------------------------------------------

    def local_names(self) -> set[str]:
        """What the functions around the node bind, comprehensions and nested functions included."""
        return {name for function in self.functions for name in bound_names(function)}

    def inner_names(self, node: ast.AST) -> set[str]:
        """The names in a piece of code that only the functions at hand know: what they bind, and ``self``."""
        names = self.source.all(ast.Name, self.functions)
        stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        inner = {name for function in self.functions[:-1] for name in bound_names(function.args)}
        return set(loaded_names(node)) & (stored | inner | {"self", "cls", "ctx"})

    def hoistable(self, node: ast.expr) -> bool:
        """Whether an expression means the same above the function: it uses names that the file binds further up."""
        odd = (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.comprehension, ast.NamedExpr)
        names = {name.id for name in self.source.all(ast.Name, node)}
        return bool(self.functions) and not self.source.all(odd, node) and self.hoistable_names(names)

    def hoistable_names(self, names: set[str]) -> bool:
        """Whether names mean the same above the function: the file binds them further up, or they are builtins."""
        top = self.source.top_statement(self.node) if self.node is not None else None
        above = _bound_before(self.source.tree, top) | {"__file__", "__name__"}
        return not names & self.local_names() and all(name in above or hasattr(builtins, name) for name in names)

    # --- changes ------------------------------------------------------------------------------------------------------

    @property
    def torch(self) -> str:
        """How the file calls torch; `edits` imports it where the file does not."""
        return self.source.module_name("torch") or "torch"

    def edits(self, changes: Changes, *more: Edit, above: str = "", importing: str = "") -> tuple[Edit, ...]:
        """The edits that put code in the place of nodes (`Source.changed`); none if they cannot be made.

        ``above`` are lines for above the statement of the module that the node is in, ``importing`` is for the imports.
        """
        codes = [*changes.values(), *(edit.text for edit in more), above]
        uses_torch = any(re.search(r"\btorch\.", code or "") for code in codes)
        imports = ["import torch"] if uses_torch and self.source.module_name("torch") is None else []
        with contextlib.suppress(ValueError):
            added = [self.source.importing(line, self.node) for line in filter(None, [*imports, importing])]
            lines = [self.source.above(self.node, above)] if above and self.node is not None else []
            return self.source.edits(changes, [*itertools.chain(*added), *lines, *more])
        return ()


@functools.lru_cache(maxsize=16)
def _bound_before(tree: ast.Module, top: ast.stmt | None) -> frozenset[str]:
    """The names that the statements of a file before one of them bind; the same place may break at each compile."""
    above = itertools.takewhile(lambda node: node is not top, tree.body)
    return frozenset(name for node in above for name in bound_names(node))
