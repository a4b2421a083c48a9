"""Lines and columns: what editors, Python and PyTorch each call line 3, column 7."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope_server.base.line_map import LineMap
from irscope_server.base.texts import Texts, from_units, split_lines, to_units


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a\n", ["a", ""]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("a\x0cb\nc", ["a\x0cb", "c"]),
        ("s = '\u2028'\nc", ["s = '\u2028'", "c"]),
    ],
)
def test_lines_are_those_of_python_and_lsp(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


LINE = "é = '😀' + x"


@pytest.mark.parametrize(("encoding", "units"), [("utf-16", 11), ("utf-8", 14), ("utf-32", 10)])
def test_columns_in_the_units_of_the_client_and_back(encoding: str, units: int) -> None:
    column = LINE.index("x")
    assert to_units(LINE, column, encoding) == units
    assert from_units(LINE, units, encoding) == column


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_beyond_the_line_are_cut_to_its_end(encoding: str) -> None:
    assert from_units(LINE, 999, encoding) == len(LINE)
    assert to_units(LINE, 999, encoding) == to_units(LINE, len(LINE), encoding)


def test_half_a_surrogate_pair_is_no_error() -> None:
    assert from_units("😀x", 1, "utf-16") == 0


def test_the_buffer_goes_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("on disk\n")
    buffers = {str(path): "in the editor"}
    texts = Texts(buffers.get)
    assert list(texts.lines(str(path))) == ["in the editor"]
    assert not texts.is_as_on_disk(str(path))
    assert texts.lines(str(path)) is texts.lines(str(path))
    del buffers[str(path)]
    assert list(texts.lines(str(path))) == ["on disk", ""]
    assert list(texts.lines(str(tmp_path / "none.py"))) == []


def test_a_buffer_with_other_line_endings_is_the_text_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    assert Texts({str(path): "a = 1\nb = 2\n"}.get).is_as_on_disk(str(path))


@pytest.mark.parametrize(
    ("old", "new", "exact", "near"),
    [
        ("abc", "abc", [0, 1, 2], [0, 1, 2]),
        ("abc", "xabc", [1, 2, 3], [1, 2, 3]),
        ("abc", "ac", [0, None, 1], [0, 1, 1]),
        ("abc", "aXc", [0, None, 2], [0, 1, 2]),
        ("abcd", "aXYcd", [0, None, 3, 4], [0, 1, 3, 4]),
        ("abc", "", [None, None, None], [0, 0, 0]),
    ],
)
def test_lines_move_with_edits(old: str, new: str, exact: list[int | None], near: list[int]) -> None:
    line_map = LineMap(list(old), list(new))
    assert [line_map.exact(line) for line in range(len(old))] == exact
    assert [line_map.near(line) for line in range(len(old))] == near


def test_a_huge_rewrite_is_not_compared_line_by_line() -> None:
    old, new = [f"a{i}" for i in range(5000)], [f"b{i}" for i in range(5000)]
    old[2500] = new[2500] = "same"
    assert LineMap(old, new).exact(2500) is None
    assert LineMap(old, new).near(2500) == 2500
