"""How a report looks on a terminal."""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path

import pytest
from facts import a_compile, a_finding, a_kernel, a_range, an_outcome
from irscope.cli.report import finding_lines, report_lines
from irscope.cli.tables import table
from irscope.cli.text import Paint, short_path, width_of
from irscope.protocol import SCHEMA, CaptureGap, Origin, OutcomeKind, Related, Report
from irscope.vocabulary.visible import printable

PLAIN = Paint(io.StringIO())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def steers(text: str) -> list[str]:
    """The characters of a text that a terminal obeys instead of showing."""
    return [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("é", 1), ("e\u0301", 1), ("名前", 4), ("🚀", 2), ("ﾊ", 1), ("ａ", 2), ("λ→x", 3)],
)
def test_width(text: str, width: int) -> None:
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext é 名", "plain\ttext é 名"),
        ("\033[2J\033[31mred", "�[2J�[31mred"),
        ("\x9b31m", "�31m"),  # the one-byte form of ESC [
        ("a\rb\bc\x07d\ne\x00f", "a�b�c�d�e�f"),
        ("\033]0;title\x07", "�]0;title�"),
        ("a\u202egpj.exe\u2066b\u200fc\u200bd", "a�gpj.exe�b�c�d"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_control_characters_are_not_printed(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_nothing_in_a_report_steers_the_terminal(tmp_path: Path) -> None:
    """Every text that a script or a stored trace can choose."""
    evil = "\033]0;owned\x07\x9b2J\r\b"
    file = tmp_path / "model.py"
    file.write_text(f"x = 1  # {evil}\n" * 9, encoding="utf-8", newline="")
    finding = a_finding(
        kind="graph-break" + evil, code="GB0059" + evil, message=evil, explanation=evil, hints=(evil,), link=evil,
        file=str(file), range=a_range(1, 0, 1, 5), compiles=("0/0" + evil,),
        related=(Related(str(file) + evil, a_range(1, 0, 1, 2), evil),),
    )  # fmt: skip
    elsewhere = a_finding(file=str(file) + evil)
    report = Report(
        SCHEMA, "run" + evil, "s" + evil, "2.13" + evil, an_outcome(message=evil),
        (a_compile(id="0/0" + evil, function=evil, file=str(file) + evil),), (finding, elsewhere),
        (a_kernel(name=evil, origins=(Origin(evil, 1),)),), (CaptureGap(evil, evil),),
    )  # fmt: skip
    assert steers("\n".join(report_lines(report, PLAIN))) == []


def test_carets_stand_under_wide_characters_and_tabs(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("def f(名):\n\t🚀 = 名.sum().item()\n", encoding="utf-8")
    lines = finding_lines(a_finding(file=str(file), range=a_range(2, 5, 2, 19), explanation="", hints=()), PLAIN)
    source = next(i for i, line in enumerate(lines) if "sum()" in line)
    assert lines[source] == "  2 │ \t🚀 = 名.sum().item()"
    assert lines[source + 1] == "    │ \t     ^^^^^^^^^^^^^^^"


def test_a_long_range_is_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("".join(f"line({number})\n" for number in range(1, 12)))
    text = "\n".join(finding_lines(a_finding(file=str(file), range=a_range(2, 2, 11, 4)), PLAIN))
    assert "line(5)" in text
    assert "line(6)" not in text
    assert "│ …" in text


def test_a_finding_in_a_file_that_is_gone() -> None:
    lines = finding_lines(a_finding(file="/gone/model.py"), PLAIN)
    assert lines[0].startswith("/gone/model.py:6:5  graph-break GB0059 ×2")
    assert not any("│" in line for line in lines)


def test_a_finding_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)  # a path is shown as it is shortest, from where this is
    file = tmp_path / "model.py"
    file.write_text("\n" * 5 + "    print(x, y)\n")
    assert "\n".join(finding_lines(a_finding(file=str(file)), PLAIN)).replace(str(file), "model.py") == (
        """\
model.py:6:5  graph-break GB0059 ×2
  Graph break: it cannot be traced.
  6 │     print(x, y)
    │     ^^^^^^^^^^^
  Dynamo does not know it.
  → Do not.
  → Or do.
  /home/me/main.py:9: called from main
  in 2 compiles: 0/0, 1/0
  cost: 1 extra graph, 750 ms of compile time
  https://example.org/gb0059.html"""
    )


def test_the_closing_line() -> None:
    def closing(outcome: OutcomeKind, code: int | None) -> str:
        report = Report(
            SCHEMA, "r1", "/s.py", None, an_outcome(kind=outcome, exit_code=code, message="why"), (), (), (), ()
        )
        return report_lines(report, PLAIN)[-1]

    assert closing(OutcomeKind.SCRIPT_ERROR, 3).startswith("script-error, exit code 3: why\n")
    assert closing(OutcomeKind.COMPLETED, 0).startswith("completed: why\n")
    assert closing(OutcomeKind.COMPLETED, 0).endswith("0 findings, 0 compiles, torch not found, 2.5 s, run r1")
    assert closing(OutcomeKind.ENVIRONMENT_ERROR, None) == "environment-error: why"


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Paint(Terminal())("x", "red", "bold") == "\033[31;1mx\033[0m"
    assert Paint(io.StringIO())("x", "red") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Paint(Terminal())("x", "red") == "x"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert Paint(io.StringIO())("x", "red") == "\033[31mx\033[0m"


def test_a_table_with_wide_characters() -> None:
    assert table(["name", "ms"], [["名前", "5"], ["x", "120"]], PLAIN, right=frozenset({1})) == [
        "name   ms",
        "名前    5",
        "x     120",
    ]


def test_paths_are_short_where_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert short_path(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert short_path("/b.py") == "/b.py"
