"""The edits that change a text: statements, what goes, an argument; and the comments that edits would take away.

Everything else of the text stays as it is.  A comment inside of what is replaced goes above its statement.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Sequence

from irscope.fixing.syntax import Syntax, parsed, tokens_of
from irscope.fixing.texts import joined_lines
from irscope.protocol import Edit, Position, Range

_SPACE = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
_BEFORE_CODE = re.compile(r"[\s;@]*")


def with_comments(source: Syntax, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits of a text in its order, and the comments that they take away above their statements."""
    made, above = joined_lines(edits), dict[Position, list[str]]()
    written = Counter(comment for edit in edits for comment in _comments_of(source, edit))
    for edit in made:
        taken = Counter(_comments_in(source, edit.range))
        lost = taken - written
        written -= taken
        if lost:
            above.setdefault(_line_of_statement(source, edit.range), []).extend(lost.elements())
    lifted = [
        Edit(Range(place, place), "".join(f"{line.removesuffix(line.lstrip())}{comment}\n" for comment in comments))
        for place, comments in above.items()
        for line in [source.lines[place.line - 1]]
    ]
    return tuple(sorted([*lifted, *made], key=lambda edit: (edit.range.start, edit.range.end)))


# --- each kind ----------------------------------------------------------------------------------------------------------


def statements(source: Syntax, where: Range, code: str) -> Edit:
    """Puts code, which is not indented, in the place of the statements in a range.

    An ``elif`` becomes an ``else``; among other statements on one line are only simple ones.  Raises ValueError.
    """
    code, start = code.strip("\n"), where.start
    if not owns_lines(source.lines, where):
        if any(isinstance(node, ast.stmt) and hasattr(node, "body") for node in ast.walk(parsed(code))):
            raise ValueError("a block cannot be among other statements on a line")
        return Edit(where, "; ".join(code.split("\n")))
    indent = indent_of(source.lines[start.line - 1], start.column)
    if source.lines[start.line - 1][start.column :].startswith("elif"):
        inner = reindented(code, indent + source.indentation, source.indentation)
        return Edit(where, f"else:\n{inner}")
    return Edit(where, reindented(code, indent, source.indentation).removeprefix(indent))


def removal(source: Syntax, node: ast.AST) -> Edit:
    """Takes a statement or a decorator away."""
    where = source.range(node)
    start, end = where.start, where.end
    before, rest = beside(source.lines, where)
    if isinstance(node, ast.stmt) and len(source.block(node)) == 1 and source.parent(node) is not source.tree:
        return statements(source, where, "pass")
    if not isinstance(node, ast.stmt) or owns_lines(source.lines, where):
        last = min(Position(end.line + 1, 0), source.position(len(source.text)))
        return Edit(Range(Position(start.line, 0), last), "")
    if rest.lstrip().startswith(";"):
        after = rest.lstrip()[1:].lstrip()
        return Edit(Range(start, Position(end.line, end.column + len(rest) - len(after))), "")
    return Edit(Range(Position(start.line, len(before.rstrip().removesuffix(";").rstrip())), end), "")


def argument(source: Syntax, call: ast.expr, name: str, value: str) -> Edit:
    """Passes ``name=value``, in the place of what is passed by that name; what is not a call becomes one.

    Raises ValueError if what the call is given is not known.
    """
    end = source.range(call).end
    if not isinstance(call, ast.Call):
        return Edit(Range(end, end), f"({name}={value})")
    given = next((keyword for keyword in call.keywords if keyword.arg == name), None)
    if given is not None:
        return Edit(source.range(given.value), value)
    if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(arg, ast.Starred) for arg in call.args):
        raise ValueError("what the call is given is not known")
    closes = (end.line, end.column)
    last = [token for token in source.tokens if token.end < closes and token.type not in _SPACE][-1]
    code = {",": f" {name}={value},", "(": f"{name}={value}"}.get(last.string, f", {name}={value}")
    return Edit(Range(Position(*last.end), Position(*last.end)), code)


# --- comments -----------------------------------------------------------------------------------------------------------


def _comments(tokens: Sequence[tokenize.TokenInfo]) -> list[str]:
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def _comments_of(source: Syntax, edit: Edit) -> list[str]:
    """The comments in the text of an edit, which is indented from its second line on."""
    lead, _ = beside(source.lines, edit.range)
    return _comments(tokens_of(edit.text if lead.strip() else lead + edit.text))


def _comments_in(source: Syntax, where: Range) -> list[str]:
    start, end = (where.start.line, where.start.column), (where.end.line, where.end.column)
    return _comments([token for token in source.tokens if start <= token.start < end])


def _line_of_statement(source: Syntax, where: Range) -> Position:
    """The beginning of the line with which the statement around a range begins, with its decorators."""
    code = _BEFORE_CODE.match(source.text, source.offset(where.start))
    start = source.position(code.end()) if code is not None else where.start
    around = [outer for outer in source.around(source.at(Range(start, where.end))) if isinstance(outer, ast.stmt)]
    starts = (source.range(statement).start for statement in around)
    begins = (start.line for start in starts if not source.lines[start.line - 1][: start.column].strip())
    return Position(next(begins, where.start.line), 0)


# --- lines ----------------------------------------------------------------------------------------------------------------


def beside(lines: Sequence[str], where: Range) -> tuple[str, str]:
    """What is before and after a range on its lines."""
    return lines[where.start.line - 1][: where.start.column], lines[where.end.line - 1][where.end.column :]


def owns_lines(lines: Sequence[str], where: Range) -> bool:
    """Whether nothing else is on the lines of a range."""
    before, behind = beside(lines, where)
    return not before.strip() and (not behind.strip() or behind.lstrip().startswith("#"))


def indent_of(line: str, column: int) -> str:
    """The indentation of what begins at a column: that of the line, if it begins there."""
    return line[:column] if not line[:column].strip() else " " * column


def dedented(code: str, indent: str) -> str:
    """The code of a statement without the indentation that its lines have, but the first; texts stay as they are."""
    inside = _lines_of_texts(f"if 1:\n{indent}{code}" if indent else code)
    lines = enumerate(code.split("\n"), 2 if indent else 1)
    return "\n".join(line if number in inside else line.removeprefix(indent) for number, line in lines)


def reindented(code: str, indent: str, unit: str) -> str:
    """Code at the margin with an indentation, and each block in it indented by ``unit``; texts stay as they are."""
    inside, prefixes = _lines_of_texts(code), _indentations(code)
    lines, old, new = list[str](), "", ""
    for number, line in enumerate(code.split("\n"), 1):
        if number in prefixes:
            old, depth = prefixes[number]
            new = unit * depth
        if number in inside:
            lines.append(line)
        elif line.strip():
            lines.append(indent + new + (line.removeprefix(old) if line.startswith(old) else line.lstrip()))
        else:
            lines.append("")
    return "\n".join(lines)


def _indentations(code: str) -> dict[int, tuple[str, int]]:
    """The indentation, and the number of blocks around it, by line: of statements and of the comments before them."""
    levels, indentations, comments = [""], dict[int, tuple[str, int]](), list[tokenize.TokenInfo]()
    starts = True
    for token in tokens_of(code):
        if token.type == tokenize.INDENT:
            levels.append(token.string)
        elif token.type == tokenize.DEDENT:
            levels.pop()
        elif token.type == tokenize.COMMENT and starts:
            comments.append(token)
        elif token.type == tokenize.NEWLINE:
            starts = True
        elif token.type != tokenize.NL and starts:
            starts = False
            indentations[token.start[0]] = levels[-1], len(levels) - 1
            for comment in comments:
                row, column = comment.start
                depth = min(sum(len(level) < column for level in levels), len(levels) - 1)
                indentations[row] = comment.line[:column], depth
            comments.clear()
    return indentations


def _lines_of_texts(code: str) -> set[int]:
    """The lines (1-based) of a piece of code that begin inside of a text."""
    try:
        nodes = list(ast.walk(parsed(code)))
    except ValueError:
        return set()
    constants = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))]
    texts = [*constants, *(node for node in nodes if isinstance(node, ast.JoinedStr))]
    return {line for node in texts for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)}
