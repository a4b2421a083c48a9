"""How a run ended, at the place it has to do with."""

from __future__ import annotations

import pytest
from irscope.protocol import Origin, Outcome, OutcomeKind, Severity
from irscope_server.base.texts import split_lines
from irscope_server.running.outcomes import findings_of

LINES = split_lines("import torch\n\n    boom()  \n")


ERROR, INFORMATION = Severity.ERROR, Severity.INFORMATION
OWN, OTHER = "/w/a b.py", "/w/other.py"


@pytest.mark.parametrize(
    ("kind", "message", "place", "code", "file", "line", "severity"),
    [
        ("script-error", "SyntaxError: invalid syntax (/w/a b.py:3)", (OWN, 3), "syntax-error", OWN, 3, ERROR),
        ("script-error", "SyntaxError: invalid syntax", ("a b.py", 3), "syntax-error", OWN, 3, ERROR),
        ("script-error", "ValueError: no SyntaxError here", (OWN, 3), "script-error", OWN, 3, ERROR),
        ("script-error", "ValueError: in /w/first.py:2", (OTHER, 7), "script-error", OTHER, 7, ERROR),
        ("script-error", "the script ended with sys.exit(3)", None, "script-error", OWN, 1, INFORMATION),
        ("crashed", "killed by SIGSEGV", None, "crashed", OWN, 1, ERROR),
        ("crashed", "killed by SIGSEGV (/w/a b.py:7).", (OWN, 7), "crashed", OWN, 7, ERROR),
        ("environment-error", "no torch (/w/other.py:7)", None, "environment-error", OWN, 1, Severity.WARNING),
    ],
)
def test_an_ending_is_a_finding(
    kind: str, message: str, place: tuple[str, int] | None, code: str, file: str, line: int, severity: Severity
) -> None:
    outcome = Outcome(OutcomeKind(kind), 1, message, 1.0, place=None if place is None else Origin(*place))
    (finding,) = findings_of(outcome, OWN, LINES)
    assert (finding.code, finding.file, finding.range.start.line) == (code, file, line)
    assert finding.severity is severity and finding.message == message.split(f" ({OWN}")[0]


@pytest.mark.parametrize(
    ("message", "text", "line", "columns"),
    [
        ("ValueError", "import torch\n\n    boom()  \n", 3, (4, 10)),
        ("SyntaxError: '(' was never closed", "def f(x):\n    return (x + 1\n\nf(2)\n", 2, (11, 12)),
        ("SyntaxError: invalid syntax", "x = 1 +* 2\n", 1, (7, 8)),
        ("SyntaxError: 'return' outside function", "import torch\nx = 1; return x\n", 2, (7, 15)),
        ("SyntaxError: of another Python", "if x:\n    y = 2\n", 2, (4, 9)),
    ],
)
def test_it_covers_what_is_written_on_the_line_or_python_s_caret(
    message: str, text: str, line: int, columns: tuple[int, int]
) -> None:
    outcome = Outcome(OutcomeKind.SCRIPT_ERROR, 1, message, 1.0, place=Origin("/w/a.py", line))
    (finding,) = findings_of(outcome, "/w/a.py", split_lines(text))
    assert (finding.range.start.column, finding.range.end.column) == columns


@pytest.mark.parametrize("kind", ["completed", "budget", "cancelled"])
def test_an_ending_as_wanted_is_none(kind: str) -> None:
    assert findings_of(Outcome(OutcomeKind(kind), 0, "x", 1.0), "/w/a.py", LINES) == []
