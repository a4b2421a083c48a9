"""How a run ended, as findings at the place that the ending has to do with."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from irscope.findings.kinds.outcomes import SCRIPT_ERROR
from irscope.findings.registry import kind_of
from irscope.protocol import Finding, Outcome, OutcomeKind, Position, Range, Severity

SYNTAX_ERROR = "syntax-error"

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

    Args:
        lines: The script's lines as it ran.
    """
    if outcome.kind is OutcomeKind.SCRIPT_ERROR:
        if not outcome.message:
            return []
        file, line = _place(outcome, script)
        if re.match(r"(Syntax|Indentation|Tab)Error\b", outcome.message):
            code, severity = SYNTAX_ERROR, Severity.ERROR
        else:  # a script that ends with `sys.exit(1)` says so on its first line, and need not be wrong
            code, severity = SCRIPT_ERROR.id, SCRIPT_ERROR.severity if line else Severity.INFORMATION
    elif outcome.kind in (OutcomeKind.CRASHED, OutcomeKind.ENVIRONMENT_ERROR):
        file, line = _place(outcome, script)
        code, severity = outcome.kind.value, kind_of(outcome.kind.value).severity
    else:
        return []
    return [
        Finding(
            kind=outcome.kind.value,
            code=code,
            severity=severity,
            message=outcome.without_place if line else outcome.message,
            explanation="",
            hints=_HINTS.get(outcome.kind, ()),
            link=None,
            file=file,
            range=_where(code, max(1, line), lines if file == script else ()),
            count=1,
            compiles=(),
        )
    ]


def _place(outcome: Outcome, script: str) -> tuple[str, int]:
    """The file and the 1-based line of an ending; the script and 0 if it has none."""
    if outcome.place is None:
        return script, 0
    file, line = outcome.place.file, outcome.place.line
    return (script if os.path.basename(file) == os.path.basename(script) else file), line


def _where(code: str, line: int, lines: Sequence[str]) -> Range:
    return (_caret(line, lines) if code == SYNTAX_ERROR else None) or _line_range(line, lines)


def _caret(line: int, lines: Sequence[str]) -> Range | None:
    """Where Python's caret is below a line that is not valid Python; None if this Python reads the text, or fails elsewhere."""
    try:
        compile("\n".join(lines), "<script>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.lineno == line and error.offset:
            start = Position(line, error.offset - 1)
            end_line, end = error.end_lineno or line, (error.end_offset or 0) - 1
            return (
                Range(start, Position(end_line, end))
                if (end_line, end) > (line, start.column)
                else Range(start, Position(line, start.column + 1))
            )
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _line_range(line: int, lines: Sequence[str]) -> Range:
    text = lines[line - 1] if line <= len(lines) else ""
    indent = len(text) - len(text.lstrip())
    return Range(Position(line, indent), Position(line, max(len(text.rstrip()), indent)))
