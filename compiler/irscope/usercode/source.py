"""Source text of the user's files: reading it, naming its content, and finding ranges in it."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import tokenize
from collections.abc import Iterator

from irscope.protocol import Position, Range
from irscope.usercode.reading import read_bounded, real_path
from irscope.vocabulary.records import dataclass

_overlays: dict[str, str] = {}


def use_overlays(overlays: dict[str, str]) -> None:
    """From now on these texts stand in for the files of these absolute paths."""
    _overlays.clear()
    _overlays.update({real_path(path): text for path, text in overlays.items()})
    read_source.cache_clear()
    parse.cache_clear()


def overlay_of(path: str) -> str | None:
    """The text that stands in for a file's content; None if the file on disk counts."""
    return _overlays.get(real_path(path)) if _overlays else None


def digest_of(text: str) -> str:
    """Names a text by its content; line endings do not count, since editors change them on their own."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()[:32]


@functools.lru_cache(maxsize=256)
def read_source(path: str) -> str:
    """The text of a Python file, decoded as Python does it; empty if it cannot be read."""
    if (text := overlay_of(path)) is not None:
        return text
    try:
        return decode_source(read_bounded(path))
    except (OSError, ValueError):
        return ""


def decode_source(data: bytes) -> str:
    """Bytes of a Python file as text, by its byte-order mark or coding comment, with universal newlines."""
    return io.TextIOWrapper(io.BytesIO(data), encoding=source_encoding(data), errors="replace", newline=None).read()


def source_encoding(data: bytes) -> str:
    """The encoding of a Python file: that of its byte-order mark or coding comment, else UTF-8."""
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError:
        return "utf-8"


def line_text(path: str, line: int) -> str:
    """One line (1-based) without its end; empty if there is none."""
    lines = _lines_in(read_source(path))
    return lines[line - 1] if 1 <= line <= len(lines) else ""


@functools.lru_cache(maxsize=16)
def _lines_in(text: str) -> list[str]:
    return text.split("\n")


def column_of_byte(path: str, line: int, byte: int) -> int:
    """A UTF-8 byte offset into a line, as Python's code objects give it, as an index into the line's text."""
    text = line_text(path, line)
    if text.isascii():
        return min(byte, len(text)) if text else byte
    return len(text.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "replace"))


@functools.lru_cache(maxsize=64)
def parse(path: str) -> ast.Module | None:
    """The syntax tree of a file, or None if it has none."""
    return parse_text(read_source(path))


def parse_text(text: str) -> ast.Module | None:
    """The syntax tree of a text, or None if it has none."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def range_of_node(path: str, node: ast.AST) -> Range:
    """The range of a syntax node that has a place (an expression, a statement, an argument, …)."""
    line, end_line = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
    return Range(
        Position(line, column_of_byte(path, line, node.col_offset)),  # type: ignore[attr-defined]
        Position(end_line, column_of_byte(path, end_line, node.end_col_offset or 0)),  # type: ignore[attr-defined]
    )


def range_of_line(path: str, line: int) -> Range:
    """The statement that begins at a line (its first line if it is long), else the line without its indentation."""
    text = line_text(path, line)
    indent = len(text) - len(text.lstrip())
    stripped = text.split("#", 1)[0].rstrip() if "#" in text and _comment_is_real(text) else text.rstrip()
    return Range(Position(line, indent), Position(line, max(len(stripped), indent + 1)))


def _comment_is_real(text: str) -> bool:
    return not any(quote in text for quote in "\"'")


def range_of_focus(path: str, line: int) -> Range:
    """What a message that names only a line most likely means: the condition of the ``if`` or ``while`` that begins
    there, what a ``for`` runs over, the value of a statement; else the line."""
    for node in nodes_at(path, line):
        for part in ("test", "iter", "value", "exc"):
            focus = getattr(node, part, None)
            if isinstance(node, ast.stmt) and isinstance(focus, ast.expr):
                return range_of_node(path, focus)
    return range_of_line(path, line)


def head_of(path: str, where: Range) -> Range:
    """The part of a range that is at work, if the range is a whole compound statement: the condition of an ``if``,
    ``while`` or ``assert``, what a ``for`` runs over, the head of a ``with`` or a ``class``.

    Python gives some instructions the place of a whole statement (the jump of ``if f(x):`` in 3.11 to 3.13).  The line
    stays the same: where the condition begins on a later one, the range begins at the statement.  Any other range is
    itself.
    """
    if not line_text(path, where.start.line).startswith(_HEADS, where.start.column):
        return where  # also spares reading the syntax of a large file of a library
    for node in nodes_at(path, where.start.line):
        if (last := _end_of_head(node)) is not None and range_of_node(path, node) == where:
            head = range_of_node(path, last)
            whole = isinstance(node, (ast.With, ast.AsyncWith, ast.ClassDef)) or head.start.line != where.start.line
            return Range(where.start, head.end) if whole else head
    return where


_HEADS = ("if", "elif", "while", "assert", "for", "async", "with", "class")
"""How the statements begin that `_end_of_head` knows."""


def _end_of_head(node: ast.AST) -> ast.expr | None:
    if isinstance(node, (ast.If, ast.While, ast.Assert)):
        return node.test
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return node.items[-1].optional_vars or node.items[-1].context_expr
    if isinstance(node, ast.ClassDef):
        return max((*node.bases, *(k.value for k in node.keywords)), key=lambda n: n.end_col_offset or 0, default=None)
    return None


def operand_with(path: str, where: Range, value: Range) -> Range:
    """The operand of ``a and b`` that holds ``value``, where ``where`` is an operand on the same line; else ``where``.

    Python 3.11 gives the jumps of all operands the place of the first.
    """
    for node in nodes_at(path, where.start.line):
        if isinstance(node, ast.BoolOp):
            operands = [range_of_node(path, operand) for operand in node.values]
            for operand in operands if where in operands else ():
                is_on_line = operand.start.line == where.start.line
                if is_on_line and operand.start <= value.start and value.end <= operand.end:
                    return operand
    return where


def nodes_at(path: str, line: int) -> Iterator[ast.AST]:
    """The syntax nodes that begin on a line, outer before inner."""
    tree = parse(path)
    return iter(_nodes_by_line(tree).get(line, ()) if tree is not None else ())


@functools.lru_cache(maxsize=16)
def _nodes_in(tree: ast.Module) -> list[ast.AST]:
    """What `ast.walk` yields, in its order; the files of libraries are large and are asked for more than once."""
    found: list[ast.AST] = [tree]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
    return found


@functools.lru_cache(maxsize=16)
def _nodes_by_line(tree: ast.Module) -> dict[int, list[ast.AST]]:
    found: dict[int, list[ast.AST]] = {}
    for node in _nodes_in(tree):
        if (line := getattr(node, "lineno", None)) is not None:
            found.setdefault(line, []).append(node)
    return found


def parents(path: str) -> dict[ast.AST, ast.AST]:
    """The parent of each syntax node of a file."""
    tree = parse(path)
    return _parents_in(tree) if tree is not None else {}


@functools.lru_cache(maxsize=16)
def _parents_in(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in _nodes_in(tree) for child in ast.iter_child_nodes(node)}


def node_at_range(path: str, where: Range) -> ast.expr | ast.stmt | None:
    """The syntax node at a range: the innermost that has it exactly, else the innermost that holds it.

    A range that only names a line (where Python tells no columns) holds the statement that begins there.
    """
    tree = parse(path)
    return None if tree is None else _node_at_range(tree, path, where)


@functools.lru_cache(maxsize=64)
def _node_at_range(tree: ast.Module, path: str, where: Range) -> ast.expr | ast.stmt | None:
    found: ast.expr | ast.stmt | None = None
    found_range: Range | None = None
    for node in _nodes_in(tree):
        if not isinstance(node, (ast.expr, ast.stmt)) or not (
            node.lineno <= where.start.line <= (node.end_lineno or 0)
        ):
            continue
        held = range_of_node(path, node)
        if held == where or (held.start <= where.start and where.end <= held.end and found_range != where):
            found, found_range = node, held
    return found


def text_of_range(path: str, where: Range) -> str:
    """The source text in a range."""
    lines = _lines_in(read_source(path))[where.start.line - 1 : where.end.line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: where.end.column]
    lines[0] = lines[0][where.start.column :]
    return "\n".join(lines)


def function_at(path: str, name: str, first_line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """The function that a code object's name and first line (a decorator's line, if it has some) belong to."""
    tree = parse(path)
    if tree is None:
        return None
    for node in _nodes_in(tree):
        if isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == first_line:
            return node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first_line in (first, node.lineno):
                return node
    return None


def function_around(path: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function whose text holds a line."""
    tree = parse(path)
    best: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for node in _nodes_in(tree) if tree else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            if best is None or node.lineno >= best.lineno:
                best = node
    return best


def qualified_name_at(path: str, name: str, line: int) -> str:
    """The function of this name around a line, with the classes and functions around it: ``Block.forward``.

    The name itself where the file has no such function.
    """
    return qualified_name_in(parse(path), name, line)


def qualified_name_in(tree: ast.Module | None, name: str, line: int) -> str:
    """Like `qualified_name_at`, in the syntax tree of a file; None if it has none."""
    if tree is None or name == "<module>":
        return name
    around = [one for one in _definitions_in(tree) if one.first_line <= line <= one.end_line]
    if name.startswith("<"):  # a lambda or a comprehension
        return ".".join([*(one.name for one in around), name])
    inner = max((at for at, one in enumerate(around) if one.name == name and one.is_function), default=None)
    return name if inner is None else ".".join(one.name for one in around[: inner + 1])


@dataclass(frozen=True)
class _Definition:
    name: str
    first_line: int
    end_line: int
    is_function: bool


@functools.lru_cache(maxsize=16)
def _definitions_in(tree: ast.Module) -> tuple[_Definition, ...]:
    """The functions and classes of a file, outer before inner."""
    return tuple(
        _Definition(
            node.name,
            min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]),
            node.end_lineno or node.lineno,
            not isinstance(node, ast.ClassDef),
        )
        for node in _nodes_in(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    )


def range_of_name(path: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Range:
    """The name of a function in its ``def`` line (of a lambda: the lambda)."""
    if isinstance(node, ast.Lambda):
        return range_of_node(path, node)
    text = line_text(path, node.lineno)
    start = text.find(node.name, column_of_byte(path, node.lineno, node.col_offset) + 3)
    if start < 0:
        return range_of_line(path, node.lineno)
    return Range(Position(node.lineno, start), Position(node.lineno, start + len(node.name)))
