"""Measured time on the lines and functions of an open file, placed in its text as it is now."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.profiling.profile import MeasuredLine, Profile, bound_mark
from irscope.vocabulary import units

from irscope_server.base import words
from irscope_server.base.functions import function_of, outline_of
from irscope_server.base.line_map import LineMap
from irscope_server.base.texts import FileKey
from irscope_server.language.context import SourceContext
from irscope_server.running.measured import Measured

BEFORE_EDIT = "before your edit"
_MOST_PARTS = 3
"""The most parts of a function's step, in its lens."""


@dataclass(frozen=True)
class TimedLine:
    """A line (0-based, as the text is now) that kernels came from."""

    line: int
    measured: MeasuredLine
    profile: Profile
    stale: bool

    @property
    def title(self) -> str:
        """Like `line_title`; made when it is shown, since a large model has thousands of lines."""
        return words.of_lens([line_title(self.measured, self.profile)], *_note(self.stale))


@dataclass(frozen=True)
class TimedFunction:
    """A compiled function: the line of its first decorator (0-based, as the text is now), and whose its time is."""

    line: int
    title: str


def is_stale(context: SourceContext, measured: Measured) -> bool:
    """Whether a file of the run was edited since."""
    return context.texts.are_edited(measured.ended.texts)


def lines_with_time(context: SourceContext, key: FileKey, measured: Measured | None) -> list[TimedLine]:
    """The lines of a file that have measured time, from top to bottom; a line that was edited since has none."""
    if measured is None:
        return []
    line_map, stale = _line_map(context, key, measured), is_stale(context, measured)
    timed = [
        TimedLine(now, row, measured.profile, stale)
        for row in measured.lines.get(key, ())
        if (now := line_map.exact(row.line - 1)) is not None
    ]
    return sorted(timed, key=lambda row: row.line)


def functions_with_time(context: SourceContext, key: FileKey, measured: Measured | None) -> list[TimedFunction]:
    """The functions of a file whose compiles were measured, from top to bottom."""
    if measured is None:
        return []
    ran = measured.ended.texts.get(key) or context.texts.lines(key)
    outline = outline_of("\n".join(ran))
    line_map = _line_map(context, key, measured)
    note = _note(is_stale(context, measured))
    owners: dict[int, set[str]] = {}
    places: dict[str, str] = {}
    for compile in measured.ended.compiles.get(key, ()):
        function = function_of(outline, compile.function, compile.line) if outline else None
        owners.setdefault(function.first_line if function else compile.line, set()).add(compile.id)
        places[compile.id] = f"{compile.file}:{compile.line}"
    timed = []
    for first_line, ids in sorted(owners.items()):
        parts = _of_function(measured.profile, ids, {places[id] for id in ids})
        if parts:
            title = words.of_lens(parts, *note, separator=", ")
            timed.append(TimedFunction(line_map.near(first_line - 1), title))
    return timed


def _note(stale: bool) -> list[str]:
    return [BEFORE_EDIT] if stale else []


def _of_function(profile: Profile, compiles: set[str], places: set[str]) -> list[str]:
    """``3.2 ms of 6.8 ms (47 %): kernels 1.49 ms``, ``launch 1.2 ms``, ``guards 93 µs``; empty if it was not measured."""
    kernels = sum(kernel.seconds for kernel in profile.kernels if kernel.stage.rpartition("/")[0] in compiles)
    parts = {"kernels": kernels} if kernels else {}
    for gap in profile.gaps:
        if gap.where in places:
            parts[gap.kind] = parts.get(gap.kind, 0.0) + gap.seconds
    whole = sum(parts.values())
    if whole <= 0:
        return []
    shown = sorted(parts.items(), key=lambda part: -part[1])[:_MOST_PARTS]
    first, *others = (f"{kind} {units.duration(seconds)}" for kind, seconds in shown)
    return [f"{_of_step(whole, profile)}: {first}", *others]


def line_title(row: MeasuredLine, profile: Profile) -> str:
    """``1.49 ms of 6.8 ms (22 %), bound 610 µs, memory-bound``."""
    parts = [_of_step(row.seconds, profile)]
    if row.bound_seconds is not None:
        parts.append(f"bound {bound_mark(row)}{units.duration(row.bound_seconds)}")
    if row.bound_by:
        parts.append(f"{row.bound_by}-bound")
    return ", ".join(parts)


def _of_step(seconds: float, profile: Profile) -> str:
    step = profile.step_seconds
    return f"{units.duration(seconds)} of {units.duration(step)} ({units.percent(seconds, step)})"


def _line_map(context: SourceContext, key: FileKey, measured: Measured) -> LineMap:
    return context.views.line_map(measured.ended.texts.get(key), context.texts.lines(key))
