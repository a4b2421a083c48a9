"""What is said when the pointer rests on a finding or on a compiled function."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irscope.protocol import Compile, Finding
from lsprotocol import types

from irscope_server import words
from irscope_server.diagnostics import lsp_range
from irscope_server.lenses import lens_title
from irscope_server.texts import from_units
from irscope_server.views import PlacedFinding, PlacedFunction

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer

_MOST_ROWS = 20
_MOST_COMPILES = 8


def hover_at(server: IrscopeServer, path: str, position: types.Position) -> types.Hover | None:
    """The hover at a position: the findings there, then the compiles of the function whose ``def`` it is in."""
    lines = server.texts.lines(path)
    if position.line >= len(lines):
        return None
    column = from_units(lines[position.line], position.character, server.encoding)
    here = [placed for placed in server.views.findings(path) if _covers(placed, position.line, column, lines)]
    parts = [finding_text(placed.finding, server.uri_of) for placed in here]
    for function in server.views.functions(path):
        if function.first_line <= position.line <= function.line:
            parts.append(function_text(function))
    if not parts:
        return None
    place = here[0] if here else None
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts)),
        lsp_range(lines, place.line, place.column, place.end_line, place.end_column, server.encoding)
        if place
        else None,
    )


def _covers(placed: PlacedFinding, line: int, column: int, lines: Sequence[str]) -> bool:
    end = (placed.end_line, placed.end_column)
    if end <= (placed.line, placed.column):  # an empty range is shown as its line
        return line == placed.line
    return (placed.line, placed.column) <= (line, column) <= end


def finding_text(finding: Finding, uri_of: Callable[[str], str]) -> str:
    """A finding as Markdown; nothing of the script's own text counts as markup."""
    code = words.markdown(finding.code)
    if finding.link and finding.link.startswith(("https://", "http://")):
        code = f"[{code}]({finding.link.replace(' ', '%20').replace(')', '%29').replace('<', '%3C')})"
    parts = [
        f"**{words.markdown(finding.kind.replace('-', ' ').capitalize())}** {code}",
        words.markdown(finding.message),
    ]
    if finding.explanation:
        parts += [words.markdown(line) for line in finding.explanation.split("\n") if line.strip()]
    if finding.hints:
        parts.append("\n".join(["What you can do:", "", *(f"- {words.markdown(hint)}" for hint in finding.hints)]))
    times = words.count(finding.count, "time")
    if finding.compiles:
        shown = ", ".join(words.code_span(name) for name in finding.compiles[:_MOST_COMPILES])
        more = len(finding.compiles) - _MOST_COMPILES
        word = "compile" if len(finding.compiles) == 1 else "compiles"
        parts.append(f"Seen {times}, in {word} {shown}" + (f" and {more} more." if more > 0 else "."))
    elif finding.count > 1:
        parts.append(f"Seen {times}.")
    if finding.related:
        places = []
        for related in finding.related:
            line = related.range.start.line
            name = words.markdown(f"{os.path.basename(related.file)}:{line}")
            places.append(f"- [{name}]({uri_of(related.file)}#L{line}): {words.markdown(related.message)}")
        parts.append("\n".join(["See also:", "", *places]))
    return "\n\n".join(part for part in parts if part)


def function_text(function: PlacedFunction) -> str:
    """The compiles of a function as a Markdown table."""
    title = "In other files" if function.elsewhere else words.code_span(function.title)
    rows = [_row(compile) for compile in function.compiles[:_MOST_ROWS]]
    more = len(function.compiles) - _MOST_ROWS
    reasons = _recompile_reasons(function)
    table = "\n".join(
        ["| compile | function | outcome | ops | restarts | time |", "|---|---|---|---:|---:|---:|", *rows]
    )
    parts = [f"**{title}** {words.markdown(lens_title(function))}", table]
    if more > 0:
        parts.append(f"and {words.count(more, 'more compile', 'more compiles')}.")
    if reasons:
        parts.append("\n".join(["Why it was compiled again:", "", *(f"- {reason}" for reason in reasons)]))
    return "\n\n".join(parts)


def _row(compile: Compile) -> str:
    cells = (
        words.code_span(compile.id),
        words.code_span(words.function_title(compile.function)),
        compile.outcome.value.replace("-", " "),
        str(compile.graph_ops),
        str(compile.restarts),
        words.seconds(compile.seconds) or "0",
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _recompile_reasons(function: PlacedFunction) -> list[str]:
    ids = {compile.id for compile in function.compiles}
    return [
        f"{words.markdown(finding.message)} (line {finding.range.start.line}, {words.count(finding.count, 'time')})"
        for finding in function.ended.report.findings
        if finding.kind in ("recompilation", "recompile-limit") and not ids.isdisjoint(finding.compiles)
    ][:_MOST_ROWS]
