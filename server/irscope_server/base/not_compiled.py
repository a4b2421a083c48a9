"""Why a function runs as plain Python: what its lens, its hover and the end of its pipeline say."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irscope.findings.kinds import graph_break, skipped_frame
from irscope.protocol import Compile, CompileOutcome, Finding, Range, Report

from irscope_server.base.functions import outline_of
from irscope_server.base.texts import by_file, file_key

HEAD = "runs as plain Python"

Cause = tuple[str, Range]
"""A file, and the range of a graph break in it as it was when it ran."""


@dataclass(frozen=True)
class NotCompiled:
    """Why there is no graph of a function.

    Args:
        words: ``break at line 75 in MoE.forward``.
        file, line: Where the graph break is that is the cause, in the text as it is now (0-based); no file: there is
            none.
    """

    words: str
    file: str = ""
    line: int = 0


def why_not_compiled(
    report: Report,
    compiles: Sequence[Compile],
    lines_of: Callable[[str], Sequence[str]],
    line_now: Callable[[str, int], int] = lambda _file, line: line,
) -> NotCompiled | None:
    """Why the compiles of a function gave no graph; None if one of them did, or no finding says why.

    Args:
        lines_of: Gives the lines of a file as they ran.
        line_now: Gives the line in which a line (0-based) of a file is now.
    """
    if not compiles or any(compile.outcome is not CompileOutcome.SKIPPED for compile in compiles):
        return None
    ids = {compile.id for compile in compiles}
    of_them = [finding for finding in report.findings if not ids.isdisjoint(finding.compiles)]
    if (cause := _cause_in(of_them)) is None:
        nothing = any(finding.kind == skipped_frame.KIND.id for finding in of_them)
        return NotCompiled("it has nothing to compile") if nothing else None
    file, where = cause
    line = line_now(file, where.start.line - 1)
    here = file_key(file) in by_file(compiles)
    place = f"line {line + 1}" if here else f"{os.path.basename(file)}:{line + 1}"
    function = _function_around(lines_of(file), where.start.line)
    inside = f" in {function}" if function else ""
    return NotCompiled(f"break at {place}{inside}", file, line)


def _cause_in(findings: Sequence[Finding]) -> Cause | None:
    """The break that a skipped frame names; without one (of a function that had been cut before) the last break."""
    for finding in findings:
        if finding.code == skipped_frame.BY_BREAK and finding.related:
            return finding.related[0].file, finding.related[0].range
    breaks = [(finding.file, finding.range) for finding in findings if finding.kind == graph_break.KIND.id]
    return breaks[-1] if breaks else None


def _function_around(lines: Sequence[str], line: int) -> str:
    """The innermost function around a line (1-based); empty if there is none."""
    outline = outline_of("\n".join(lines))
    around = [f for f in outline.functions if f.first_line <= line <= f.end_line] if outline else []
    return max(around, key=lambda f: f.first_line).title if around else ""
