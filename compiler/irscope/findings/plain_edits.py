"""Changes of fixes as plain text edits, by their places in the text.

They are made where a finding is, in the run's process, which has the standard library and torch alone.  Where LibCST is
installed, irscope's server and command line offer those that it makes of the same changes instead
(`irscope_server.fixing.own`): those keep comments inside of what is replaced.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from irscope.protocol import ChangeKind, Edit, Position, Range, SyntaxChange
from irscope.usercode.source import node_at_range, range_of_node, read_source, text_of_range


def edits_of(file: str, changes: Sequence[SyntaxChange]) -> tuple[Edit, ...]:
    """The edits that make changes of a file; none if one of them cannot be made in this way."""
    lines = read_source(file).split("\n")
    made = [_edit(file, lines, change) for change in changes]
    found = tuple(edit for edit in made if edit is not None)
    return found if len(found) == len(made) else ()


def owns_lines(lines: Sequence[str], where: Range) -> bool:
    """Whether nothing else is on the lines of a range."""
    before, behind = lines[where.start.line - 1][: where.start.column], lines[where.end.line - 1][where.end.column :]
    return not before.strip() and (not behind.strip() or behind.lstrip().startswith("#"))


def indent_of(line: str, column: int) -> str:
    """The indentation of what begins at a column: that of the line, if it begins there."""
    return line[:column] if not line[:column].strip() else " " * column


def _edit(file: str, lines: Sequence[str], change: SyntaxChange) -> Edit | None:
    start, end = change.range.start, change.range.end
    if change.kind is ChangeKind.STATEMENTS:
        return _statements(lines, change)
    if change.kind is ChangeKind.REMOVAL:
        return Edit(Range(Position(start.line, 0), Position(end.line + 1, 0)), "")
    if change.kind is ChangeKind.ARGUMENT:
        return _argument(file, change)
    return Edit(change.range, change.code)


def _statements(lines: Sequence[str], change: SyntaxChange) -> Edit:
    """An ``elif`` becomes an ``else``; among other statements on one line are only simple ones."""
    start, text = change.range.start, change.code
    if not owns_lines(lines, change.range):
        return Edit(change.range, "; ".join(text.split("\n")))
    first = lines[start.line - 1]
    if first[start.column :].startswith("elif"):
        text = "else:\n    " + text.replace("\n", "\n    ")
    indent = "\n" + indent_of(first, start.column)
    return Edit(change.range, indent.join(text.split("\n")).replace(indent + "\n", "\n\n"))


def _argument(file: str, change: SyntaxChange) -> Edit | None:
    call = node_at_range(file, change.range)
    if not isinstance(call, ast.Call):
        return Edit(Range(change.range.end, change.range.end), f"({change.code})")
    name, _, value = change.code.partition("=")
    given = next((keyword for keyword in call.keywords if keyword.arg == name), None)
    if given is not None:
        return Edit(range_of_node(file, given.value), value)
    if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    whole = range_of_node(file, call)
    written = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not written:
        before = Range(range_of_node(file, call.func).end, whole.end)
        return Edit(before, f"({change.code})") if text_of_range(file, before).strip() == "()" else None
    last = max(range_of_node(file, each).end for each in written)
    rest = "\n".join(line.partition("#")[0] for line in text_of_range(file, Range(last, whole.end)).split("\n"))
    if rest.count(")") != 1:  # an argument in parentheses of its own
        return None
    return Edit(Range(last, last), f", {change.code}")
