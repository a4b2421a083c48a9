"""How a run ended, at the place it has to do with."""

from __future__ import annotations

import pytest
from irscope.protocol import Outcome, OutcomeKind, Severity
from irscope_server.base.texts import split_lines
from irscope_server.running.outcomes import findings_of

LINES = split_lines("import torch\n\n    boom()  \n")


@pytest.mark.parametrize(
    ("kind", "message", "code", "file", "line", "severity"),
    [
        ("script-error", "SyntaxError: invalid syntax (/w/a b.py:3)", "syntax-error", "/w/a b.py", 3, Severity.ERROR),
        (
            "script-error",
            "SyntaxError: invalid syntax (a b.py, line 3)",
            "syntax-error",
            "/w/a b.py",
            3,
            Severity.ERROR,
        ),
        (
            "script-error",
            "ValueError: no SyntaxError here (/w/a b.py:3)",
            "script-error",
            "/w/a b.py",
            3,
            Severity.WARNING,
        ),
        ("script-error", "ValueError (/w/other.py:7)", "script-error", "/w/other.py", 7, Severity.WARNING),
        (
            "script-error",
            "RuntimeError: in /w/first.py:2 (/w/other.py:7)",
            "script-error",
            "/w/other.py",
            7,
            Severity.WARNING,
        ),
        ("script-error", 'File "/w/other.py", line 7, in g', "script-error", "/w/other.py", 7, Severity.WARNING),
        ("script-error", "the script ended with sys.exit(3)", "script-error", "/w/a b.py", 1, Severity.INFORMATION),
        ("crashed", "killed by SIGSEGV", "crashed", "/w/a b.py", 1, Severity.WARNING),
        ("crashed", "killed by SIGSEGV (/w/a b.py:7).", "crashed", "/w/a b.py", 7, Severity.WARNING),
        ("environment-error", "no torch", "environment-error", "/w/a b.py", 1, Severity.WARNING),
    ],
)
def test_an_ending_is_a_finding(kind: str, message: str, code: str, file: str, line: int, severity: Severity) -> None:
    (finding,) = findings_of(Outcome(OutcomeKind(kind), 1, message, 1.0), "/w/a b.py", LINES)
    assert (finding.code, finding.file, finding.range.start.line) == (code, file, line)
    assert finding.severity is severity and finding.message == message


def test_it_covers_what_is_written_on_the_line() -> None:
    (finding,) = findings_of(Outcome(OutcomeKind.SCRIPT_ERROR, 1, "E (/w/a.py:3)", 1.0), "/w/a.py", LINES)
    assert (finding.range.start.column, finding.range.end.column) == (4, 10)


@pytest.mark.parametrize("kind", ["completed", "budget", "cancelled"])
def test_an_ending_as_wanted_is_none(kind: str) -> None:
    assert findings_of(Outcome(OutcomeKind(kind), 0, "x", 1.0), "/w/a.py", LINES) == []
