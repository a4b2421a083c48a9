"""Where a new line goes at the top level of a file, with the blank lines that PEP 8 wants around it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence

from irscope.fixing.syntax import Definition, Syntax, is_docstring
from irscope.protocol import Edit, Position, Range

_SETTING = re.compile(r"\w+\._(dynamo|inductor|functorch)\.config\.")


def import_change(source: Syntax, line: str, top: ast.stmt | None) -> Edit:
    """Adds an import below the other imports.  ``top`` is the top-level statement that needs it."""
    after = last_import(source, top)
    future = isinstance(after, ast.ImportFrom) and after.module == "__future__"
    return _inserted(source, line, after or _docstring(source), 1 if future or after is None else 0)


def setting_change(source: Syntax, line: str, modules: tuple[str, ...], top: ast.stmt | None) -> Edit:
    """Adds a setting of PyTorch below the imports, or below the settings that are there, with missing imports."""
    after = last_import(source, top)
    settings = _settings_after(source, after)
    if settings is not None and not modules:
        return _inserted(source, line, settings, 0)
    imports = [f"import {module}" for module in modules]
    text = "\n".join([*imports, *([""] if imports else []), line])
    return _inserted(source, text, after or _docstring(source), 0 if imports and after is not None else 1)


def change_above(source: Syntax, text: str, top: ast.stmt | None) -> Edit:
    """Adds lines above a top-level statement: directly below an assignment before it, else apart."""
    statements = source.tree.body
    at = statements.index(top) if top in statements else 0
    before = statements[at - 1] if at > 0 else None
    definition = text.startswith(("class ", "def ", "@"))
    if definition or isinstance(before, Definition):
        lead = 2
    else:
        lead = 0 if isinstance(before, (ast.Assign, ast.AnnAssign)) else 1
    return _inserted(source, text, before, lead, 2 if definition else 1)


def _inserted(source: Syntax, text: str, after: ast.stmt | None, lead: int, trail: int = 1) -> Edit:
    """Puts lines below a statement, or at the beginning of the code.

    ``lead`` blank lines are put before them, and as many after them as are missing to ``trail``: two before a
    definition.
    """
    lines, following = source.lines, source.following(after)[:1] if after is not None else source.tree.body[:1]
    if after is not None and following and source.first_line(following[0]) <= (after.end_lineno or 0):
        where = Position(following[0].lineno, following[0].col_offset)  # two statements on one line
        return Edit(Range(where, where), "; ".join(text.split("\n")) + "; ")
    if after is not None:
        row = after.end_lineno or 1
    else:  # below the comments at the beginning: a shebang, the encoding, a licence
        row = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        lead = 1 if row else 0
    blank, wanted = _blank_lines(source, row, following, trail)
    where, start = Position(row + 1, 0), "\n" * lead
    if row >= len(lines):
        where, start = Position(len(lines), len(lines[-1])), "\n" * (lead + 1)
    if after is None and row and blank:  # the blank line below the comments is there already
        where, start, blank = Position(row + blank + 1, 0), "", 0
    return Edit(Range(where, where), start + text + "\n" * (1 + max(0, wanted - blank)))


def _blank_lines(source: Syntax, row: int, following: Sequence[ast.stmt], trail: int) -> tuple[int, int]:
    """How many blank lines follow a line, and how many are wanted before the next statement."""
    rest = source.lines[row:]
    blank = next((number for number, line in enumerate(rest) if line.strip()), len(rest))
    if not following or blank == len(rest):
        return blank, 0
    between = source.lines[row + blank : source.first_line(following[0]) - 1]
    is_apart = isinstance(following[0], Definition) and all(line.lstrip().startswith("#") for line in between)
    return blank, max(trail, 2 if is_apart else 1)


def _docstring(source: Syntax) -> ast.stmt | None:
    return next(filter(is_docstring, source.tree.body[:1]), None)


def last_import(source: Syntax, top: ast.stmt | None) -> ast.stmt | None:
    """The last import before the first definition and before ``top``; that of torch may come later."""
    above = list(itertools.takewhile(lambda statement: statement is not top, source.tree.body))
    first = list(itertools.takewhile(lambda statement: not isinstance(statement, Definition), above))
    imports = [line for line in above if _imports(line) and (line in first or _imports_torch(line))]
    return imports[-1] if imports else None


def _imports(statement: ast.stmt) -> bool:
    """Whether a statement is an import, also one that may fail or is for type checkers only."""
    if isinstance(statement, (ast.Try, ast.If)):
        return bool(statement.body) and all(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in statement.body)
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def _imports_torch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and any(alias.name.split(".")[0] == "torch" for alias in statement.names)


def _settings_after(source: Syntax, after: ast.stmt | None) -> ast.stmt | None:
    """The last of the settings of PyTorch that follow a statement directly."""
    following = source.following(after) if after is not None else []
    settings = list(itertools.takewhile(lambda statement: _SETTING.match(ast.unparse(statement)), following))
    return settings[-1] if settings else None
