"""A text as rules see it: its syntax, the names in it, and changed texts made of it."""

from __future__ import annotations

import ast
import functools
import tokenize
from collections.abc import Collection, Mapping, Sequence

from irscope.fixing import edits, top_level
from irscope.fixing.edits import beside, dedented, indent_of, owns_lines, reindented
from irscope.fixing.syntax import Syntax, parsed, tokens_of
from irscope.fixing.texts import applied
from irscope.protocol import Edit, Position, Range
from irscope.usercode import effects
from irscope.usercode.bindings import bound, dotted, targets_of
from irscope.usercode.source import parse, read_source

Changes = Mapping[ast.AST, str | None]
"""The code that is put in the place of nodes; None takes a statement or a decorator away."""


class Source(Syntax):
    """One file.  Raises ValueError for a text that is not Python, too long or nested too deeply."""

    def code(self, node: ast.AST, changes: Changes | None = None) -> str:
        """The text of a node as it is written, with those changes that are inside of it (`changed`); a statement at the margin.

        An expression has no parentheses of its own.  A node that is not of the text is written out.
        """
        if isinstance(node, ast.Module):
            return self.changed(changes or {})
        if node not in self._parents:
            return ast.unparse(node)
        if not changes:
            return self.part(node, self.text)
        start = self.span(node)[0]
        # Comments that go above the statement are not of the node: what takes its place puts them there.
        edits = [edit for edit in self.edits(_inside(node, changes)) if self.offset(edit.range.start) >= start]
        return self.part(node, applied(self.text, edits))

    def part(self, node: ast.AST, changed: str) -> str:
        """The code of a node in a text that has been changed inside of it alone."""
        start, end = self.span(node)
        part = changed[start : len(changed) - len(self.text) + end]
        indent = self.lines[self.first_line(node) - 1][: self.position(start).column]
        return dedented(part, indent) if isinstance(node, ast.stmt) and not indent.strip() else part

    def owns_lines(self, *statements: ast.stmt) -> bool:
        """Whether nothing else is on the lines of statements that follow each other."""
        return owns_lines(self.lines, self.range(*statements))

    def comments_above(self, statement: ast.stmt) -> int:
        """The first line of the comments and empty lines that are above a statement, or its own."""
        comments = {token.start[0] for token in self.tokens if token.type == tokenize.COMMENT}
        line = self.first_line(statement)
        while line > 1 and (not (above := self.lines[line - 2].strip()) or (line - 1 in comments and above[0] == "#")):
            line -= 1
        return line

    def code_with_comments(self, statement: ast.stmt, changes: Changes | None = None) -> str:
        """The code of a statement with those changes that are inside of it, with the comments above it and at the end of its
        last line, unless they are of others on its lines."""
        where, text = self.range(statement), self.changed(_inside(statement, changes or {}))
        lead, rest = beside(self.lines, where)
        first = where.start if lead.strip() else Position(self.comments_above(statement), 0)
        end = self.offset(where.end) + (0 if rest.lstrip().startswith(";") else len(rest))
        code = text[self.offset(first) : len(text) - len(self.text) + end].strip()
        return code if lead.strip() else dedented(code, lead)

    def block_code(self, block: Sequence[ast.stmt], changes: Changes | None = None) -> str:
        """The same of several statements, with the empty lines between them."""
        gaps = ["" if self.lines[self.comments_above(statement) - 1].strip() else "\n" for statement in block]
        codes = [self.code_with_comments(statement, changes) for statement in block]
        return "\n".join(f"{gap}{code}" for gap, code in zip(gaps, codes, strict=True)).strip("\n")

    def changed(self, changes: Changes, more: Sequence[Edit] = ()) -> str:
        """The text with code in the place of nodes, and with more changes, as `above` and `importing` make them.

        The code of a statement is one or several statements at the margin; None takes a statement or a decorator away.
        Comments stay (`edits.with_comments`).  Raises ValueError if that is not possible.
        """
        return applied(self.text, self.edits(changes, more))

    def edits(self, changes: Changes, more: Sequence[Edit] = ()) -> tuple[Edit, ...]:
        """The edits that make the text that `changed` gives."""
        return edits.with_comments(self, [*more, *(self._edit(node, code) for node, code in changes.items())])

    def before(self, statement: ast.stmt, code: str) -> Edit:
        """Puts statements, at the margin as for `changed`, directly before a statement of a block.  Raises ValueError if
        others are on its lines."""
        return self._beside(statement, code, Position(self.first_line(statement), 0))

    def after(self, statement: ast.stmt, code: str) -> Edit:
        """The same after it."""
        return self._beside(statement, code, Position(self.last_line(statement) + 1, 0))

    def _beside(self, statement: ast.stmt, code: str, place: Position) -> Edit:
        where = self.range(statement)
        if not owns_lines(self.lines, where) or place.line > len(self.lines):
            raise ValueError("a line cannot be added there")
        indent = indent_of(self.lines[where.start.line - 1], where.start.column)
        lines = reindented(code, indent, self.indentation)
        return Edit(Range(place, place), f"{lines}\n")

    def above(self, node: ast.AST, code: str) -> Edit:
        """Puts lines above the statement of the module that a node is in."""
        return top_level.change_above(self, code, self.top_statement(node))

    def importing(self, line: str, node: ast.AST | None = None) -> list[Edit]:
        """Adds an import to those of the file, if it is not there; above the statement of the module with a node."""
        imports = [statement for statement in self.tree.body if isinstance(statement, ast.Import)]
        modules = {alias.name for statement in imports for alias in statement.names if not alias.asname}
        if line in self.lines or line.removeprefix("import ") in modules:
            return []
        return [top_level.import_change(self, line, self.top_statement(node))]

    def setting(self, line: str, *modules: str) -> Edit:
        """Adds a setting of PyTorch below the imports, with modules that it needs."""
        missing = tuple(module for module in modules if self.module_name(module) is None)
        return top_level.setting_change(self, line, missing, None)

    def _edit(self, node: ast.AST, code: str | None) -> Edit:
        if code is None:
            return edits.removal(self, node)
        where = self.range(node)
        return edits.statements(self, where, code) if isinstance(node, ast.stmt) else Edit(where, code)

    # --- names --------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Every name in the file."""
        in_strings = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        return frozenset(in_strings.union(token.string for token in self.tokens if token.type == tokenize.NAME))

    def fresh(self, wanted: str, taken: Collection[str] = ()) -> str:
        """A name that the file does not have, and that is not taken."""
        name, number = wanted, 2
        while name in self.names or name in taken:
            name, number = f"{wanted}_{number}", number + 1
        return name

    @functools.cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name of the file stands for: ``F`` is ``torch.nn.functional``."""
        imports = [node for node in self.nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        return {name: value for node in imports for name, value in bound(node) if isinstance(value, str)}

    @property
    def torch(self) -> str:
        """How the file calls torch.  Raises ValueError if it does not import it."""
        name = self.module_name("torch")
        if name is None:
            raise ValueError("torch is not imported")
        return name

    def module_name(self, module: str) -> str | None:
        """How the file calls an imported module: ``np`` for ``numpy``; None if no import outside of functions binds it."""
        for node in self.nodes:
            for alias in node.names if isinstance(node, ast.Import) and self.function(node) is None else ():
                if alias.name == module and alias.asname:
                    return alias.asname
                if not alias.asname and module in (alias.name, alias.name.split(".")[0]):
                    return module
        return None

    def full_name(self, node: ast.AST | None) -> str:
        """The dotted name of an expression, with imported names as they are called where they come from; else empty."""
        head, dot, rest = dotted(node).partition(".") if node is not None else ("", "", "")
        return f"{self.imports.get(head, head)}{dot}{rest}"

    @functools.cached_property
    def constants(self) -> dict[str, ast.expr]:
        """The values of names in capitals that the file assigns once, at its top level."""
        assigned = [(name, node) for node in self.tree.body if isinstance(node, ast.Assign) for name, _ in bound(node)]
        names = [name for name, _ in assigned]
        return {name: node.value for name, node in assigned if name.isupper() and names.count(name) == 1}

    def can_be_left_out(self, statement: ast.stmt) -> bool:
        """Whether all that a statement does is output: only that may be left out while compiling."""
        return effects.effects_of(self.tree).can_be_left_out(statement)


def _inside(node: ast.AST, changes: Changes) -> dict[ast.AST, str | None]:
    return {part: changes[part] for part in ast.walk(node) if part in changes}


@functools.lru_cache(maxsize=32)
def source_of(text: str, tree: ast.Module | None = None) -> Source:
    """A text with its syntax; many rules are asked about one.  Raises ValueError as `Source`."""
    return Source(text, tree)


def source_of_file(path: str) -> Source | None:
    """A file of the user's, or of a library, as the run has it, with the tree that `irscope.usercode` knows it by."""
    tree = parse(path)
    return source_of(read_source(path), tree) if tree is not None else None


def bound_names(node: ast.AST) -> set[str]:
    """The names that a piece of code binds, its arguments and whatever is inside it included."""
    parts = list(ast.walk(node))
    stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return stored | {name for part in parts for name, _ in bound(part) if "." not in name}


def changed_names(*nodes: ast.AST) -> set[str]:
    """The names of parameters, and those that code binds or changes a part of, as `x[0] = 1` does; not those of comprehensions."""
    parts = [part for node in nodes for part in ast.walk(node)]
    targets = [target for part in parts if not isinstance(part, ast.comprehension) for target in targets_of(part)]
    names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return names | {part.arg for part in parts if isinstance(part, ast.arg)}


def loaded_names(node: ast.AST) -> list[str]:
    """The names that a piece of code reads, each once, in order."""
    return list(dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)))


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression, which may be on several lines.  Raises ValueError."""
    depth = 0
    for token in tokens_of(text):
        depth += (token.string in _OPEN) - (token.string in _CLOSED) if token.type == tokenize.OP else 0
        if depth < 0:
            break
    try:
        tree = parsed(f"({text}\n)", "eval")
    except ValueError as error:
        raise ValueError(f"{error}: no expression") from None
    if depth or not isinstance(tree, ast.Expression):
        raise ValueError("the text is not an expression")
    return tree.body


_OPEN, _CLOSED = ("(", "[", "{"), (")", "]", "}")
_LOOSE = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom,
    ast.Starred, ast.GeneratorExp, ast.Tuple,
)  # fmt: skip


def tight(text: str) -> str:
    """An expression, with parentheses if something could bind to a part of it."""
    node = parse_expression(text := text.strip())
    # The tree is that of the text in one more pair of parentheses: a tuple begins with its own.
    first = 0 if isinstance(node, (ast.Tuple, ast.GeneratorExp)) else 1
    return f"({text})" if isinstance(node, _LOOSE) and (node.lineno, node.col_offset) == (1, first) else text


def whole(text: str) -> str:
    """An expression, with parentheses if it cannot end a statement without them: those it had around several lines."""
    try:
        parsed(text)
    except ValueError:
        return f"({text})"
    return text
