"""How a run ended, as findings at the place that the ending has to do with."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from irscope.findings.kinds.outcomes import SCRIPT_ERROR
from irscope.findings.registry import kind_of
from irscope.protocol import Finding, Outcome, OutcomeKind, Position, Range, Severity

_PLACES = (
    re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)'),
    re.compile(r"\((?P<file>[^()\n]+?)(?:, line |:)(?P<line>\d+)\)"),
    re.compile(r"(?P<file>(?:[A-Za-z]:)?[^\s:\"'()]+\.py):(?P<line>\d+)"),
)

_HINTS = {
    OutcomeKind.ENVIRONMENT_ERROR: (
        "Choose another interpreter with the setting irscope.python, or install what is missing in this one.",
    ),
    OutcomeKind.CRASHED: (
        "What was captured before the crash is kept. Run the script in a terminal to see whether it crashes there, too.",
    ),
}


def findings_of(outcome: Outcome, script: str, lines: Sequence[str]) -> list[Finding]:
    """What the user should see in the editor about the ending; empty if it ended well, by a limit or by request.

    Parameters
    ----------
    lines
        The script's lines as it ran.
    """
    if outcome.kind is OutcomeKind.SCRIPT_ERROR:
        if not outcome.message:
            return []
        file, line = place_in(outcome.message, script)
        if re.match(r"(Syntax|Indentation|Tab)Error\b", outcome.message):
            code, severity = "syntax-error", Severity.ERROR
        else:  # a script that ends with `sys.exit(1)` says so on its first line, and need not be wrong
            code, severity = SCRIPT_ERROR.id, SCRIPT_ERROR.severity if line else Severity.INFORMATION
    elif outcome.kind in (OutcomeKind.CRASHED, OutcomeKind.ENVIRONMENT_ERROR):
        file, line = place_in(outcome.message, script) if outcome.kind is OutcomeKind.CRASHED else (script, 0)
        code, severity = outcome.kind.value, kind_of(outcome.kind.value).severity
    else:
        return []
    return [
        Finding(
            kind=outcome.kind.value,
            code=code,
            severity=severity,
            message=outcome.message,
            explanation="",
            hints=_HINTS.get(outcome.kind, ()),
            link=None,
            file=file,
            range=_line_range(max(1, line), lines if file == script else ()),
            count=1,
            compiles=(),
        )
    ]


def place_in(message: str, script: str) -> tuple[str, int]:
    """The file and the 1-based line that a message names last; the script and 0 if it names none."""
    found: list[tuple[int, str, int]] = []
    for pattern in _PLACES:
        for match in pattern.finditer(message):
            file = match["file"]
            if os.path.basename(file) == os.path.basename(script):
                found.append((match.start(), script, int(match["line"])))
            elif os.path.isabs(file):
                found.append((match.start(), file, int(match["line"])))
    if not found:
        return script, 0
    _, file, line = max(found)
    return file, line


def _line_range(line: int, lines: Sequence[str]) -> Range:
    text = lines[line - 1] if line <= len(lines) else ""
    indent = len(text) - len(text.lstrip())
    return Range(Position(line, indent), Position(line, max(len(text.rstrip()), indent)))
