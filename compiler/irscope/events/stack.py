"""Where in the user's code something is happening right now: from the live Python stack and from Dynamo's own.

Dynamo walks over the user's bytecode; the place it is at is not on the Python stack but in its translators, one per
inlined function, and in the ``real_stack`` of the exceptions that it raises.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from irscope.events.printed_frames import FRAME, range_of
from irscope.internals.compile_context import traced_stack
from irscope.internals.dynamo_frames import callers_of_compiled_code, jump_tests, live_translators, translators_passed
from irscope.internals.frames import callers
from irscope.protocol import Position, Range, Related, RelatedRole
from irscope.usercode.source import (
    column_of_byte,
    head_of,
    nodes_at,
    operand_with,
    qualified_name_at,
    range_of_focus,
    range_of_line,
    range_of_node,
)
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.function_names import RESUME_PREFIX, plain_name, qualified_name
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class FramePlace:
    """A frame with the range of the expression it is at.

    Args:
        resumes: Whether it is a resume function: it goes on with what the frame that called it has left.
        traced: Whether Dynamo traces it, and Python does not run it.
        qualname: The function with what it is defined in, as Python names it; empty if that is not known.
    """

    file: str
    function: str
    range: Range
    resumes: bool = False
    traced: bool = False
    qualname: str = ""

    @property
    def is_user(self) -> bool:
        """Whether the frame is in a file of the user's."""
        return is_user_file(self.file)

    @property
    def qualified(self) -> str:
        """The function with its classes: ``Block.forward``."""
        known = qualified_name(self.qualname)
        return known or qualified_name_at(self.file, self.function, self.range.start.line)


@dataclass(frozen=True)
class Told:
    """A moment, as a stored trace tells it.

    A live record is handled on the stack of its event.  A stored message is only text: `at` makes that the answer to
    the questions for the stack, until the record is handled.

    Args:
        live: The user's frames on the Python stack, outermost first.
        traced: The frames that Dynamo was tracing, outermost first.
        call: The user's call that entered the compiled code; None if the trace does not tell.
        error: What stands for the exception in flight.
        fullgraph: Whether a graph break was an error there.
    """

    live: tuple[FramePlace, ...] = ()
    traced: tuple[FramePlace, ...] = ()
    call: FramePlace | None = None
    error: BaseException | None = None
    fullgraph: bool = False


class _Now:
    """One trace is read at a time in a process."""

    told: Told | None = None


@contextlib.contextmanager
def at(told: Told) -> Iterator[None]:
    """While a record of a stored trace is handled."""
    before, _Now.told = _Now.told, told
    try:
        yield
    finally:
        _Now.told = before


def told_now() -> Told | None:
    """What the trace tells; None for a live record, whose stack is there."""
    return _Now.told


def places_now(error: BaseException | None) -> list[FramePlace]:
    """Where it happens, outermost first: the user's frames on the Python stack, and what Dynamo traces below them."""
    return with_traced(traced_places(error))


def printed_places(stack: str) -> list[FramePlace]:
    """The places of a stack that PyTorch keeps as text, outermost first."""
    return [FramePlace(match["file"], match["function"], range_of(match)) for match in FRAME.finditer(stack)]


def live_places() -> list[FramePlace]:
    """The user's frames on the Python stack of this thread, outermost first."""
    return with_traced([])


def with_traced(traced: list[FramePlace]) -> list[FramePlace]:
    """The user's frames on the Python stack of this thread, outermost first, and below them those given.

    A function that goes on in a resume function is one frame, as the user wrote it.
    """
    return _without_left([*_live_places(), *(dataclasses.replace(place, traced=True) for place in traced)])


def _live_places() -> list[FramePlace]:
    if (told := told_now()) is not None:
        return list(told.live)
    places: list[FramePlace] = []
    for frame in callers():
        code = frame.f_code
        if is_user_file(code.co_filename):
            places.append(_place_in(code, _live_range(frame)))
    places.reverse()
    return places


def call_into_compiled_code() -> FramePlace | None:
    """The user's call that entered the compiled region which is running now: the first user frame above the innermost
    ``torch.compile`` wrapper (a function of eval_frame.py), however many resume functions lie below it."""
    if (told := told_now()) is not None:
        return told.call
    for frame in callers_of_compiled_code():
        if is_user_file(frame.f_code.co_filename):
            return dataclasses.replace(_place_in(frame.f_code, _live_range(frame)), resumes=False)
    return None


def traced_places(error: BaseException | None) -> list[FramePlace]:
    """The frames that Dynamo was tracing when it raised ``error``, outermost first, those of libraries included.

    Without an exception of Dynamo's (torch 2.9 logs some graph breaks without raising) it is what is traced right now.
    """
    if (stored := told_now()) is not None:
        return list(stored.traced)
    summaries = getattr(error, "real_stack", None)
    if summaries is None:
        summaries = traced_stack()
    # PyTorch names a resume function either by its own name or by that of the user's function.
    exact = {_key(*traced): traced[0] for traced in _translators(error)}
    told = [(plain_name(summary.name), summary.filename, summary.lineno or 1) for summary in summaries]
    if (chain := _raised_in(error)) and _key(*chain[-1]) not in told:
        # PyTorch loses frames of generators that run while something else is inlined (``sum(f(v) for v in x)``).
        return [place for place, _ in chain]
    places = []
    for (name, file, line), summary in zip(told, summaries, strict=True):
        columns = getattr(summary, "colno", None), getattr(summary, "end_colno", None)
        guessed = FramePlace(file, name, _range_from_columns(file, line, *columns), _is_resume(summary.name))
        places.append(exact.get((name, file, line)) or guessed)
    return places


def places_of_error(error: BaseException) -> list[FramePlace]:
    """Where a tracer that runs the user's Python was when it raised an error, outermost first, with its callers.

    Frames of PyTorch's own are left out; those of other packages are kept.
    """
    frames = []
    for summary in traceback.extract_tb(error.__traceback__):
        file, line = summary.filename, summary.lineno or 1
        if is_user_file(file) or is_package_file(file):
            columns = getattr(summary, "colno", None), getattr(summary, "end_colno", None)
            frames.append(FramePlace(file, plain_name(summary.name), _range_from_columns(file, line, *columns)))
    return with_traced(frames)


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
        last = deeper.pop(cause_among(deeper))
        where = f"the cause lies here, in `{last.qualified}` of a library"
        related.append(Related(last.file, last.range, where, RelatedRole.CAUSE))
    callers = [place for place in places[:at] if place.is_user]
    related += [call_in(place.file, place.range, place.qualified) for place in (*callers, *deeper)]
    return tuple(related)


def cause_among(deeper: Sequence[FramePlace]) -> int:
    """Which of the frames below the user's one holds the cause: the last one of an installed package, else the last."""
    packages = (i for i in range(len(deeper) - 1, -1, -1) if is_package_file(deeper[i].file))
    return next(packages, len(deeper) - 1)


def call_in(file: str, range: Range, function: str) -> Related:
    """A call on the way to a finding, in a function."""
    where = "at module level" if function == "<module>" else f"in `{function}`"
    return Related(file, range, f"called {where}", RelatedRole.CALLER)


def name_of_code(code: types.CodeType) -> str:
    """A code object's function with its classes, also of a resume function: ``Block.forward``."""
    if qualname := _qualname_of(code):
        return qualified_name(qualname)
    return qualified_name_at(code.co_filename, plain_name(code.co_name), code.co_firstlineno)


def _qualname_of(code: types.CodeType) -> str:
    """As Python has it since 3.11, of a resume function that of the function; empty before."""
    around, dot, last = getattr(code, "co_qualname", "").rpartition(".")
    return str(around + dot + plain_name(last))


def _place_in(code: types.CodeType, where: Range) -> FramePlace:
    qualname = _qualname_of(code)
    return FramePlace(code.co_filename, plain_name(code.co_name), where, _is_resume(code.co_name), qualname=qualname)


def _is_resume(function: str) -> bool:
    return function.startswith(RESUME_PREFIX)


def _without_left(places: list[FramePlace]) -> list[FramePlace]:
    """Leaves out a frame whose resume function is next: that is where the function is now, on the same line in the call
    that goes on, if it is not the innermost one."""
    kept: list[FramePlace] = []
    for number, place in enumerate(places, 1):
        if place.resumes and kept and (kept[-1].function, kept[-1].file) == (place.function, place.file):
            left = kept.pop()
            if number < len(places) and left.range.start.line == place.range.start.line:
                place = dataclasses.replace(place, range=left.range)
        kept.append(place)
    return kept


def _live_range(frame: types.FrameType) -> Range:
    return range_at(frame.f_code, frame.f_lineno or 1, frame.f_lasti)


def range_at(code: types.CodeType, line: int, at: int) -> Range:
    """The expression of an instruction, which is named by its offset; the line where the code does not know more."""
    if sys.version_info >= (3, 11) and at >= 0:
        positions = next(islice(code.co_positions(), at // 2, None), None)
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


def _range_of(file: str, at: Any) -> Range | None:
    return _range(file, at.lineno, at.end_lineno, at.col_offset, at.end_col_offset)


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


_Traced = tuple[FramePlace, int]  # with the line that the translator itself names


def _key(place: FramePlace, line: int) -> tuple[str, str, int]:
    return place.function, place.file, line


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
        if id(translator) in done:
            continue
        done.add(id(translator))
        line = getattr(translator, "lineno", None)
        where = _range_of(code.co_filename, at) if at is not None else None
        if where is None and _is_resume(code.co_name) and line is not None:
            # With nested graph breaks it begins with a call of the resume functions of what its function called.
            yield _place_in(code, range_of_focus(code.co_filename, line)), line
        elif where is not None:
            tested = getattr(jump_tests(translator), "positions", None)
            if tested is not None and (value := _range_of(code.co_filename, tested)) is not None:
                where = operand_with(code.co_filename, where, value)
            place = _place_in(code, where)
            yield place, int(where.start.line if line is None else line)
