"""The changes that findings carry, in texts whose formatting is hard to keep."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from irscope.cli.fixing import _summary
from irscope.driver.fixing.writing import write
from irscope.fixing.texts import applied
from irscope.protocol import Finding
from irscope.usercode.source import decode_source
from support import run_forked

HARD = """\
# -*- coding: utf-8 -*-
import torch


def wrap(**options):
    return lambda function: function


@torch.compile(
    backend="eager",  # no kernels
)
def item(x):
    größe = x.sum() ; s = größe.item() ; ä = "ü…"  # Größe
    return x * s


@torch.compile(backend="eager")
@wrap(
    a=1,  # erstens
    b=2)
def tabs(x):
\tn = 1 ; y = \\
\t\tx.mean().item() * \\
\t\t2  # zweimal
\treturn f"{'ä' + f'{n!r:>{10}}'}", x + y


@torch.compile(backend="eager")
def call(x):
    return torch.add(
        x,  # the input
        x.max().item(),  # the largest: größte
        alpha=2,
    )


@torch.compile(backend="eager")
def one_line(x):
    if x.sum() > 0: x = x + 1  # positiv
    else: x = x - 1  # negativ
    return x


@torch.compile(backend="eager")
def early(x):
    if (x.sum()  # the sum
            > 0): return x + 1
    return x - 1


@torch.compile(backend="eager")
def masked(x):
    return (x[x  # values
              > 0].sum()  # positive
            ) * 2


@torch.compile(backend="eager")
def assertion(x):
    assert x.sum() > 0, \\
        f"{'ä'} is {x.sum():{'>'}{10}}"  # why
    return x * 2


for f in (item, tabs, call, one_line, early, masked, assertion):
    f(torch.ones(4))
"""
LINES = {"GB0124": {13, 23, 32}, "GB0170": {39, 40, 46, 47, 48, 60, 61}, "GB0036": {53, 54}}
"""Of the statements that the changes are of."""


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.fixture(scope="module", params=["\n", "\r\n"], ids=["lf", "crlf"])
def hard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Finding]]:
    folder = tmp_path_factory.mktemp("hard")
    script = folder / "script.py"
    script.write_bytes(HARD.replace("\n", request.param).encode())
    return decode_source(script.read_bytes()), list(run_forked(script, folder / "runs.db").report.findings)


def test_changes_keep_what_is_around_them(hard: tuple[str, list[Finding]]) -> None:
    text, findings = hard
    fixes = [(finding, fix) for finding in findings for fix in finding.fixes]
    assert {finding.range.start.line for finding, _ in fixes} == {13, 23, 32, 39, 46, 53, 60}
    for finding, fix in fixes:
        changed = applied(text, fix.edits)
        compile(changed, "changed.py", "exec")
        assert not comments(text) - comments(changed), fix.title
        matcher = difflib.SequenceMatcher(None, text.split("\n"), changed.split("\n"), autojunk=False)
        gone = {line + 1 for tag, i, j, _, _ in matcher.get_opcodes() if tag != "equal" for line in range(i, j)}
        assert gone <= LINES[finding.code], (fix.title, gone)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_is_written_as_it_was(tmp_path: Path, encoding: str, end: str) -> None:
    path = tmp_path / "script.py"
    head = "# coding: latin-1\n" if encoding == "latin-1" else "# first\n"
    text = f"{head}größe = 1\n"
    path.write_bytes(text.replace("\n", end).encode(encoding))
    write({str(path): (text, text.replace("= 1", "= 2"))})
    assert path.read_bytes() == text.replace("= 1", "= 2").replace("\n", end).encode(encoding)
    if encoding == "latin-1":
        now = decode_source(path.read_bytes())
        with pytest.raises(LookupError, match="lacks"):
            write({str(path): (now, f"{now}# €\n")})
        assert "€" not in decode_source(path.read_bytes())


def test_no_file_is_written_if_one_of_them_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were proven together."""
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        path.write_text("a = 1\n", encoding="utf-8")
    texts = {str(path): ("a = 1\n", "a = 2\n") for path in paths}
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != str(paths[1]))  # the superuser may write anything
    with pytest.raises(LookupError, match="is read-only"):
        write(texts)
    assert [path.read_text(encoding="utf-8") for path in paths] == ["a = 1\n"] * 2
    with pytest.raises(LookupError, match="changed meanwhile"):
        write({**texts, str(paths[1]): ("b = 1\n", "b = 2\n")})
    assert paths[0].read_text(encoding="utf-8") == "a = 1\n"


def test_fixes_that_are_not_applied_are_counted() -> None:
    assert list(_summary(2, 3, 2)) == ["2 of 3 findings have a verified fix."]
    first, second = _summary(6, 9, 3)
    assert first == "6 of 9 findings have a verified fix."
    assert second.startswith("The diff has 3 fixes of 6: ")
