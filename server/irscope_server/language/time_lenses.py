"""The measured time above lines and compiled functions: ``1.49 ms of 6.8 (22 %), bound 0.61, memory-bound``."""

from __future__ import annotations

from lsprotocol import types

from irscope_server.base.texts import FileKey, to_units
from irscope_server.language.context import SourceContext
from irscope_server.language.measured_lines import functions_with_time, lines_with_time
from irscope_server.running.measured import Measured

COMMAND = "irscope.showTime"
"""A command of the client; one that does not know it loses nothing but the click."""
_LEAST_SHARE = 0.01
"""The least share of a step: a line that takes less has no lens.  Its hover and its mark tell its time."""
_MOST = 40


def time_lenses(context: SourceContext, key: FileKey, measured: Measured | None) -> list[types.CodeLens]:
    """The lenses of a document's measured time; none if the setting is off."""
    if measured is None or not context.settings.measured_time:
        return []
    least = _LEAST_SHARE * measured.profile.step_seconds
    timed = [row for row in lines_with_time(context, key, measured) if row.measured.seconds >= least]
    dearest = sorted(timed, key=lambda row: -row.measured.seconds)[:_MOST]
    titled = [(function.line, function.title) for function in functions_with_time(context, key, measured)]
    titled += [(row.line, row.title) for row in dearest]
    lines = context.texts.lines(key)
    lenses = []
    for line, title in sorted(titled):
        text = lines[line] if line < len(lines) else ""
        start = types.Position(line, len(text) - len(text.lstrip()))
        end = types.Position(line, to_units(text, len(text), context.encoding))
        command = types.Command(title, COMMAND, arguments=[{"run": measured.ended.run, "line": line}])
        lenses.append(types.CodeLens(types.Range(start, end), command))
    return lenses
