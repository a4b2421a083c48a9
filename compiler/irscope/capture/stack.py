"""Where in the user's code something is happening right now: from the live Python stack and from Dynamo's own.

Dynamo walks over the user's bytecode; the place it is at is not on the Python stack but in its translators, one per
inlined function, and in the ``real_stack`` of the exceptions that it raises.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from irscope.internals.compile_context import traced_stack
from irscope.internals.dynamo_frames import callers_of_compiled_code, live_translators, translators_passed
from irscope.internals.frames import callers
from irscope.protocol import Position, Range, Related
from irscope.usercode.source import (
    column_of_byte,
    head_of,
    nodes_at,
    qualified_name_at,
    range_of_focus,
    range_of_line,
    range_of_node,
)
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.function_names import plain_name, qualified_name

CAUSE_IN_LIBRARY = "the cause lies here"  # how the note at a library's line begins


@dataclass(frozen=True)
class FramePlace:
    """A frame with the range of the expression it is at."""

    file: str
    function: str
    range: Range

    @property
    def is_user(self) -> bool:
        """Whether the frame is in a file of the user's."""
        return is_user_file(self.file)

    @property
    def qualified(self) -> str:
        """The function with its classes: ``Block.forward``."""
        return qualified_name_at(self.file, self.function, self.range.start.line)


def live_places() -> list[FramePlace]:
    """The user's frames on the Python stack of this thread, outermost first.

    A function that goes on in a resume function is one frame, as the user wrote it.
    """
    places: list[FramePlace] = []
    for frame in callers():
        code = frame.f_code
        if is_user_file(code.co_filename):
            places.append(FramePlace(code.co_filename, plain_name(code.co_name), _live_range(frame)))
    places.reverse()
    return _without_repeats(places)


def call_into_compiled_code() -> FramePlace | None:
    """The user's call that entered the compiled region which is running now: the first user frame above the innermost
    ``torch.compile`` wrapper (a function of eval_frame.py), however many resume functions lie below it."""
    for frame in callers_of_compiled_code():
        if is_user_file(frame.f_code.co_filename):
            return FramePlace(frame.f_code.co_filename, plain_name(frame.f_code.co_name), _live_range(frame))
    return None


def traced_places(error: BaseException | None) -> list[FramePlace]:
    """The frames that Dynamo was tracing when it raised ``error``, outermost first, those of libraries included.

    Without an exception of Dynamo's (torch 2.9 logs some graph breaks without raising) it is what is traced right now.
    """
    summaries = getattr(error, "real_stack", None)
    if summaries is None:
        summaries = traced_stack()
    exact = {(name, file, line): where for name, file, line, where in _translators(error)}
    told = {(summary.name, summary.filename, summary.lineno) for summary in summaries}
    if (chain := _raised_in(error)) and chain[-1][:3] not in told:
        # PyTorch loses frames of generators that run while something else is inlined (``sum(f(v) for v in x)``).
        return [FramePlace(file, plain_name(name), where) for name, file, _, where in chain]
    places = []
    for summary in summaries:
        name, file, line = summary.name, summary.filename, summary.lineno or 1
        where = exact.get((name, file, line)) or _range_from_columns(
            file, line, getattr(summary, "colno", None), getattr(summary, "end_colno", None)
        )
        places.append(FramePlace(file, plain_name(name), where))
    return places


def innermost_user(places: list[FramePlace]) -> int | None:
    """The index of the last place in the user's code."""
    return next((i for i in range(len(places) - 1, -1, -1) if places[i].is_user), None)


def related_to(places: list[FramePlace], at: int) -> tuple[Related, ...]:
    """The other frames of a stack as related locations.

    First the library frame in which the cause lies, if it is one; then the calls in call order: the user's, the
    outermost first, and those of libraries on the way to the cause.
    """
    related = []
    deeper = places[at + 1 :]
    if deeper:
        last = next((place for place in reversed(deeper) if is_package_file(place.file)), deeper[-1])
        deeper.remove(last)
        related.append(Related(last.file, last.range, f"{CAUSE_IN_LIBRARY}, in `{last.qualified}` of a library"))
    callers = [place for place in places[:at] if place.is_user]
    related += [Related(place.file, place.range, _called_from(place.qualified)) for place in (*callers, *deeper)]
    return tuple(related)


def _called_from(function: str) -> str:
    return "called at module level" if function == "<module>" else f"called in `{function}`"


def name_of_code(code: types.CodeType) -> str:
    """A code object's function with its classes, also of a resume function: ``Block.forward``."""
    if qualname := getattr(code, "co_qualname", ""):  # since Python 3.11
        around, dot, last = qualname.rpartition(".")
        return qualified_name(around + dot + plain_name(last))
    return qualified_name_at(code.co_filename, plain_name(code.co_name), code.co_firstlineno)


def _without_repeats(places: list[FramePlace]) -> list[FramePlace]:
    """Folds a frame and the resume function that it called: the later one is where the function is now."""
    folded: list[FramePlace] = []
    for place in places:
        if folded and folded[-1].function == place.function and folded[-1].file == place.file:
            if folded[-1].range.start.line <= place.range.start.line and _same_function(folded[-1], place):
                folded.pop()
        folded.append(place)
    return folded


def _same_function(outer: FramePlace, inner: FramePlace) -> bool:
    """False for a function that calls itself: the resume function is never called where its own name is."""
    from irscope.usercode.source import line_text

    return f"{inner.function}(" not in line_text(outer.file, outer.range.start.line)


def _live_range(frame: types.FrameType) -> Range:
    code, line = frame.f_code, frame.f_lineno or 1
    if sys.version_info >= (3, 11) and frame.f_lasti >= 0:
        positions = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
        if positions is not None and (found := _range(code.co_filename, *positions)):
            return found
    return range_of_line(code.co_filename, line)


def _range(
    file: str, line: int | None, end_line: int | None, column: int | None, end_column: int | None
) -> Range | None:
    """A range from instruction positions (columns in UTF-8 bytes); None if one of them is missing."""
    if line is None or end_line is None or column is None or end_column is None:
        return None
    where = Range(
        Position(line, column_of_byte(file, line, column)),
        Position(end_line, column_of_byte(file, end_line, end_column)),
    )
    return head_of(file, where)


def _range_from_columns(file: str, line: int, column: int | None, end_column: int | None) -> Range:
    """The range that begins at a line and column; its end line, which PyTorch does not tell, from the syntax tree."""
    if column is None or end_column is None:
        return range_of_focus(file, line)
    for node in nodes_at(file, line):
        if getattr(node, "col_offset", None) == column and getattr(node, "end_col_offset", None) == end_column:
            return head_of(file, range_of_node(file, node))
    return Range(
        Position(line, column_of_byte(file, line, column)), Position(line, column_of_byte(file, line, end_column))
    )


_Traced = tuple[str, str, int, Range]  # a function's name, its file, the line it is at, the exact range


def _translators(error: BaseException | None) -> Iterator[_Traced]:
    """What Dynamo's translators are at, with the exact range of the instruction: of those at work, and of those that the
    exception and its causes passed through."""
    translators = live_translators()
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        translators += translators_passed(error)
        error = error.__cause__ or error.__context__
    return _traced_by(translators)


def _raised_in(error: BaseException | None) -> list[_Traced]:
    """What was being traced where an exception was raised, outermost first; empty if it did not come from there."""
    passed = translators_passed(error) if error is not None else []
    return list(_traced_by([*reversed(live_translators()), *passed])) if any(_traced_by(passed)) else []


def _traced_by(translators: list[Any]) -> Iterator[_Traced]:
    done: set[int] = set()
    for translator in translators:
        code, at = translator.f_code, translator.current_instruction.positions
        if at is None or id(translator) in done:
            continue
        done.add(id(translator))
        where = _range(code.co_filename, at.lineno, at.end_lineno, at.col_offset, at.end_col_offset)
        if where is not None:
            yield code.co_name, code.co_filename, int(getattr(translator, "lineno", where.start.line)), where
