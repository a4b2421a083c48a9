"""What is said when the pointer rests on a finding or on a compiled function."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from irscope.findings.kinds import recompilation, recompile_limit
from irscope.protocol import Compile
from irscope.vocabulary import units
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.functions import Outline, Parameter, outline_of
from irscope_server.base.texts import FileKey, from_units
from irscope_server.language.context import SourceContext
from irscope_server.language.diagnostics import lsp_range
from irscope_server.language.finding_text import finding_text
from irscope_server.language.guard_words import argument_text, latency_text
from irscope_server.language.lenses import lens_title
from irscope_server.language.line_hovers import line_text
from irscope_server.language.time_hovers import time_text
from irscope_server.language.tried_fixes import gain_text, hints_of, untried
from irscope_server.language.type_labels import symbol_rows
from irscope_server.language.views import PlacedFinding, PlacedFunction

_MOST_ROWS = 20
_PATIENCE = 0.04
"""Seconds that a hover waits for guards to be read."""
_BEING_READ = "The guards are being read. Hover again to see them."


async def hover_at(context: SourceContext, key: FileKey, position: types.Position) -> types.Hover | None:
    """The hover at a position: the findings there, the guards on the parameter there, then the compiles of the
    function whose ``def`` it is in, or what the line became."""
    lines = context.texts.lines(key)
    if position.line >= len(lines):
        return None
    column = from_units(lines[position.line], position.character, context.encoding)
    here = [placed for placed in context.views.findings(key) if _covers(placed, position.line, column, lines)]
    parts = [_finding_part(context, placed) for placed in here]
    span = next(((placed.line, placed.column, placed.end_line, placed.end_column) for placed in here), None)
    outline = outline_of("\n".join(lines))
    has_head = False
    for function in context.views.functions(key):
        parameter = _parameter(function, outline, position.line + 1, column, lines)
        on_head = function.first_line <= position.line <= function.line
        if parameter is None and not on_head:
            continue
        guarded, latency = await _guards(context, function, parameter.name if parameter else "")
        if parameter is not None:
            parts.append(guarded)
            span = span or (position.line, parameter.column, position.line, parameter.end_column)
        if on_head:
            parts.append(_paragraphs(function_text(function), latency))
            has_head = True
    parts.append(time_text(context, key, position.line, await context.profiles.touching(key)))
    if not has_head:
        parts.append(await _line_text(context, key, position.line, column))
    text = "\n\n---\n\n".join(filter(None, parts))
    if not text:
        return None
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, text),
        lsp_range(lines, *span, context.encoding) if span else None,
    )


def _finding_part(context: SourceContext, placed: PlacedFinding) -> str:
    """A finding's words, what removing it gains, and the symbols that they name."""
    return _paragraphs(
        finding_text(
            placed, hints_of(context, placed), untried(context, placed.run), context.uri_of, context.rich_hovers
        ),
        gain_text(context, placed),
        "" if context.rich_hovers else _paragraphs(*symbol_rows(placed.finding.symbols)),
    )


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _parameter(
    function: PlacedFunction, outline: Outline | None, line: int, column: int, lines: Sequence[str]
) -> Parameter | None:
    """The parameter of a compiled function at a place (1-based line)."""
    if function.elsewhere or outline is None:
        return None
    for outlined in outline.functions:
        if outlined.line == function.line + 1 and outlined.title == function.title:
            return outlined.parameter_at(line, column, lines)
    return None


async def _guards(context: SourceContext, function: PlacedFunction, parameter: str) -> tuple[str, str]:
    """What is said of the guards on a parameter, and of the time that all guards take; of the newest compiles.

    A big model has tens of thousands, so all of it happens in other threads.  What takes longer than a hover may is
    there for the next one.
    """

    async def read() -> tuple[str, str]:
        guards = await context.archive.guards(function.ended.report, function.compiles[-_MOST_ROWS:])
        return await asyncio.to_thread(
            lambda: (argument_text(parameter, guards, context.uri_of) if parameter else "", latency_text(guards))
        )

    reading = asyncio.ensure_future(read())
    context.in_background(reading)
    done, _ = await asyncio.wait([reading], timeout=_PATIENCE)
    if not done:
        return (_BEING_READ, "") if parameter else ("", _BEING_READ)
    return ("", "") if reading.exception() is not None else reading.result()


async def _line_text(context: SourceContext, key: FileKey, line: int, column: int) -> str:
    """What is said of a compiled line; empty while its graphs are still being read."""
    reading = asyncio.ensure_future(line_text(context, key, line, column))
    context.in_background(reading)
    done, _ = await asyncio.wait([reading], timeout=_PATIENCE)
    return reading.result() if done and reading.exception() is None else ""


def _covers(placed: PlacedFinding, line: int, column: int, lines: Sequence[str]) -> bool:
    end = (placed.end_line, placed.end_column)
    if end <= (placed.line, placed.column):  # an empty range is shown as its line
        return line == placed.line
    return (placed.line, placed.column) <= (line, column) <= end


def function_text(function: PlacedFunction) -> str:
    """The compiles of a function as a Markdown table."""
    rows = [_row(compile) for compile in function.compiles[:_MOST_ROWS]]
    more = len(function.compiles) - _MOST_ROWS
    reasons = _recompile_reasons(function)
    table = "\n".join(
        ["| compile | function | outcome | ops | restarts | time |", "|---|---|---|---:|---:|---:|", *rows]
    )
    head = words.markdown(lens_title(function))
    parts = [head if function.elsewhere else f"**{words.code_span(function.title)}** {head}", table]
    if more > 0:
        parts.append(f"and {units.count(more, 'more compile', 'more compiles')}.")
    if reasons:
        parts.append("\n".join(["Why it was compiled again:", "", *(f"- {reason}" for reason in reasons)]))
    return "\n\n".join(parts)


def _row(compile: Compile) -> str:
    cells = (
        words.code_span(compile.id),
        words.code_span(compile.title),
        compile.outcome.value.replace("-", " "),
        str(compile.graph_ops),
        str(compile.restarts),
        words.known_duration(compile.seconds) or "0",
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _recompile_reasons(function: PlacedFunction) -> list[str]:
    ids = {compile.id for compile in function.compiles}
    return [
        f"{words.markdown(finding.message)} (line {finding.range.start.line}, {units.count(finding.count, 'time')})"
        for finding in function.ended.report.findings
        if finding.kind in (recompilation.KIND.id, recompile_limit.KIND.id) and not ids.isdisjoint(finding.compiles)
    ][:_MOST_ROWS]
