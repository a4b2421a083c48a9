"""Changed texts in the user's files: the bytes that a change does not touch are as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.fixing.writing import write
from irscope.driver.trials.proving import Prover
from irscope.usercode.source import decode_source

KEPT = {
    "line ends of all kinds": (b"a = 1\r\nb = 2\nc = 3\rd = 4\r\n", b"a = 1\r\nb = 20\nc = 3\rd = 4\r\n"),
    "most lines end otherwise": (b"a = 1\nb = 2\r\nc = 3\n", b"a = 1\nb = 20\r\nc = 3\n"),
    "a mark": (b"\xef\xbb\xbfb = 2\r\n", b"\xef\xbb\xbfb = 20\r\n"),
    "no end of the last line": (b"a = 1\r\nb = 2", b"a = 1\r\nb = 20"),
    "one line": (b"b = 2", b"b = 20"),
    "form feeds": ("\f\n# \u2028 \x85\nb = 2 \f\n".encode(), "\f\n# \u2028 \x85\nb = 20 \f\n".encode()),
    "another encoding": (b"# coding: cp1252\n# \x80\nb = 2\n", b"# coding: cp1252\n# \x80\nb = 20\n"),
    "bytes that are of no encoding": (b"# \xff\xfe\nb = 2\n", b"# \xff\xfe\nb = 20\n"),
}


def changed(data: bytes, old: str = "b = 2", new: str = "b = 20") -> tuple[str, str]:
    before = decode_source(data)
    return before, before.replace(old, new)


@pytest.mark.parametrize("case", KEPT)
def test_bytes_beside_a_change_stay(case: str, tmp_path: Path) -> None:
    data, expected = KEPT[case]
    path = tmp_path / "script.py"
    path.write_bytes(data)
    write({str(path): changed(data)})
    assert path.read_bytes() == expected


def test_new_lines_end_as_those_around_them(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    data = b"a = 1\r\nb = 2\r\nc = 3\n"
    path.write_bytes(data)
    write({str(path): changed(data, "b = 2\n", "b = 2\nnew = 1\nc = 2\n")})
    assert path.read_bytes() == b"a = 1\r\nb = 2\r\nnew = 1\r\nc = 2\r\nc = 3\n"


def test_a_changed_line_with_bytes_of_no_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    data = b"a = 1\nb = 2  # \xff\n"
    path.write_bytes(data)
    with pytest.raises(LookupError, match=r"script\.py:2 has bytes that are not utf-8"):
        write({str(path): changed(data)})
    assert path.read_bytes() == data


def test_a_file_that_is_gone_or_read_only(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        path.write_bytes(b"b = 2\n")
    texts = {str(path): ("b = 2\n", "b = 20\n") for path in paths}
    paths[1].chmod(0o444)  # for the superuser, too
    with pytest.raises(LookupError, match="is read-only"):
        write(texts)
    paths[1].unlink()
    with pytest.raises(LookupError, match="cannot be read any more"):
        write(texts)
    assert paths[0].read_bytes() == b"b = 2\n"


def test_a_file_that_changes_while_fixes_are_tried_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(b"b = 2\n")
    with Prover(RunSpec(str(path))) as prover:
        tried = prover.text_of(str(path)).replace("b = 2", "b = 20")
        path.write_bytes(b"mine = 1\nb = 2\n")
        with pytest.raises(LookupError, match="changed meanwhile"):
            write({str(path): (prover.text_of(str(path)), tried)})
    assert path.read_bytes() == b"mine = 1\nb = 2\n"
