"""Text of the user's files: encodings, columns, ranges of syntax."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Position, Range
from irscope.usercode import source
from irscope.usercode.source import (
    column_of_byte,
    decode_source,
    digest_of,
    function_around,
    function_at,
    line_text,
    nodes_at,
    operand_with,
    parse,
    range_of_line,
    range_of_name,
    range_of_node,
    read_source,
    use_overlays,
)


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    use_overlays({})


def file_of(tmp_path: Path, text: str | bytes, name: str = "model.py") -> str:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return str(path)


def on_line(line: int, start: int, end: int) -> Range:
    return Range(Position(line, start), Position(line, end))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        ("é = 1\n".encode(), "é = 1\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),  # a byte-order mark is no text
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (
            b"#!/usr/bin/env python\n# coding: cp1252\nx = '\x80'\n",
            "#!/usr/bin/env python\n# coding: cp1252\nx = '€'\n",
        ),
        (b"x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        (b"x = 1\ry = 2", "x = 1\ny = 2"),
        (b"x = '\xff'\n", "x = '�'\n"),  # not UTF-8: still something to show
        (b"# coding: no-such-codec\nx = 1\n", "# coding: no-such-codec\nx = 1\n"),
        (b"", ""),
        (b"x\f= 1\x0b\x1c\n", "x\f= 1\x0b\x1c\n"),  # only \n, \r and \r\n end a line
    ],
)
def test_bytes_are_decoded_as_python_does(data: bytes, text: str) -> None:
    assert decode_source(data) == text


def test_a_digest_does_not_change_with_line_endings() -> None:
    assert digest_of("a\r\nb\n") == digest_of("a\nb\n") != digest_of("a\nb")
    assert digest_of("\ud800") != digest_of("")


@pytest.mark.parametrize(
    ("line", "byte", "column"),
    [
        ("y = x.sin()", 4, 4),
        ("y = x.sin()", 99, 11),
        ("été = x.sin()", 8, 6),
        ('print("é", λ.shape)', 12, 11),
        ("x = '🚀' + y", 13, 10),
        ("\té = x", 4, 3),
        ("\t\ty = x", 6, 6),
        ("名 = 前", 6, 4),
    ],
)
def test_columns(tmp_path: Path, line: str, byte: int, column: int) -> None:
    """Code objects count bytes of UTF-8, findings count characters; a tab is one of each."""
    path = file_of(tmp_path, f"# first\n{line}\n")
    assert column_of_byte(path, 2, byte) == column


def test_columns_agree_with_the_compiler(tmp_path: Path) -> None:
    text = "def mesure(données):\n    étiquette = 'λ'; print(étiquette, données.sum().item())\n"
    path = file_of(tmp_path, text)
    (call,) = [n for n in nodes_at(path, 2) if isinstance(n, ast.Call) and ast.unparse(n).endswith("item()")]
    where = range_of_node(path, call)
    assert text.split("\n")[1][where.start.column : where.end.column] == "données.sum().item()"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects have no columns")
def test_columns_in_a_file_of_another_encoding(tmp_path: Path) -> None:
    """CPython counts in UTF-8 whatever the file's own encoding is."""
    data = "# coding: latin-1\nx = 'é'; print(x)\n".encode("latin-1")
    path = file_of(tmp_path, data)
    code: Any = compile(data, path, "exec")
    last = max(p[3] for p in code.co_positions() if p[0] == 2 and p[3] is not None)
    assert last == 18
    assert column_of_byte(path, 2, last) == len("x = 'é'; print(x)")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.py")
    assert read_source(path) == ""
    assert line_text(path, 1) == ""
    assert column_of_byte(path, 1, 7) == 7
    assert range_of_line(path, 3) == on_line(3, 0, 1)


def test_lines_out_of_range(tmp_path: Path) -> None:
    path = file_of(tmp_path, "x = 1")
    assert [line_text(path, line) for line in (-1, 0, 1, 2)] == ["", "", "x = 1", ""]


@pytest.mark.parametrize(
    ("line", "start", "end"),
    [
        ("    y = x + 1", 4, 13),
        ("\ty = x  ", 1, 6),
        ("    y = x  # why", 4, 9),
        ("    y = '#'  # why", 4, 18),  # a quote: where the comment begins is not known from the line alone
        ("", 0, 1),
        ("    ", 4, 5),
        ("# only a comment", 0, 1),
    ],
)
def test_the_range_of_a_line(tmp_path: Path, line: str, start: int, end: int) -> None:
    assert range_of_line(file_of(tmp_path, line + "\n"), 1) == on_line(1, start, end)


def test_overlays_stand_in_for_files(tmp_path: Path) -> None:
    path = file_of(tmp_path, "old\n")
    assert read_source(path) == "old\n"
    link = tmp_path / "link.py"
    link.symlink_to(path)
    use_overlays({str(link): "new\n"})
    assert read_source(path) == read_source(str(link)) == "new\n"
    use_overlays({})
    assert read_source(path) == "old\n"
    assert source.overlay_of(path) is None


FUNCTIONS = """\
import functools

@functools.cache
@functools.wraps(print)
def decorated(x):
    def inner(y):
        return y
    return inner

async def later(x): return x
both = lambda x: x
class C:
    def decorated(self, été):
        return self
"""


@pytest.mark.parametrize(
    ("name", "first_line", "where"),
    [
        ("decorated", 3, on_line(5, 4, 13)),  # a code object begins at the first decorator
        ("decorated", 5, on_line(5, 4, 13)),
        ("inner", 6, on_line(6, 8, 13)),
        ("later", 10, on_line(10, 10, 15)),
        ("<lambda>", 11, on_line(11, 7, 18)),
        ("decorated", 13, on_line(13, 8, 17)),
    ],
)
def test_functions_by_name_and_line(tmp_path: Path, name: str, first_line: int, where: Range) -> None:
    path = file_of(tmp_path, FUNCTIONS)
    node = function_at(path, name, first_line)
    assert node is not None
    assert range_of_name(path, node) == where


@pytest.mark.parametrize(
    ("text", "jump", "value", "operand"),
    [
        ("if a is b and f(c).g():", "a is b", "f(c)", "f(c).g()"),
        ("if a is b and f(c).g():", "a is b", "a", "a is b"),
        ("if a is b and f(c).g():", "f(c)", "a", "f(c)"),
        ("x = a or b or c", "a", "c", "c"),
        ("if f(c):", "f(c)", "c", "f(c)"),
    ],
)
def test_the_operand_that_a_jump_tests(tmp_path: Path, text: str, jump: str, value: str, operand: str) -> None:
    path = file_of(tmp_path, f"{text}\n    pass\n" if text.endswith(":") else f"{text}\n")

    def range_of(part: str) -> Range:
        column = text.index(part)
        return Range(Position(1, column), Position(1, column + len(part)))

    assert operand_with(path, range_of(jump), range_of(value)) == range_of(operand)


def test_functions_that_are_not_there(tmp_path: Path) -> None:
    path = file_of(tmp_path, FUNCTIONS)
    assert function_at(path, "decorated", 4) is None
    assert function_at(path, "nothing", 5) is None
    assert function_at(str(tmp_path / "gone.py"), "f", 1) is None


@pytest.mark.parametrize(("line", "name"), [(7, "inner"), (8, "decorated"), (14, "decorated"), (1, None), (11, None)])
def test_the_function_around_a_line(tmp_path: Path, line: int, name: str | None) -> None:
    node = function_around(file_of(tmp_path, FUNCTIONS), line)
    assert (node.name if node else None) == name


@pytest.mark.parametrize("text", ["def f(:\n", "\0", "(" * 3000])
def test_a_file_with_no_syntax_tree(tmp_path: Path, text: str) -> None:
    path = file_of(tmp_path, text)
    assert parse(path) is None
    assert list(nodes_at(path, 1)) == []
