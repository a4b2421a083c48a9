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

from irscope.protocol import Position, Range, Related
from irscope.source import column_of_byte, head_of, nodes_at, range_of_focus, range_of_line, range_of_node
from irscope.usercode import is_package_file, is_user_file

RESUME_PREFIX = "torch_dynamo_resume_in_"
CAUSE_IN_LIBRARY = "the cause lies here"  # how the note at a library's line begins


@dataclass(frozen=True)
class Place:
    """A frame with the range of the expression it is at."""

    file: str
    function: str
    range: Range

    @property
    def is_user(self) -> bool:
        return is_user_file(self.file)


def live_places() -> list[Place]:
    """The user's frames on the Python stack of this thread, outermost first.

    A function that goes on in a resume function is one frame, as the user wrote it.
    """
    places: list[Place] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_user_file(code.co_filename):
            places.append(Place(code.co_filename, plain_name(code.co_name), _live_range(frame)))
        frame = frame.f_back
    places.reverse()
    return _without_repeats(places)


def call_into_compiled_code() -> Place | None:
    """The user's call that entered the compiled region which is running now: the first user frame above the innermost
    ``torch.compile`` wrapper (a function of eval_frame.py), however many resume functions lie below it."""
    inside = True
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if inside:
            inside = not file.endswith("eval_frame.py")
        elif is_user_file(file):
            return Place(file, plain_name(frame.f_code.co_name), _live_range(frame))
        frame = frame.f_back
    return None


def traced_places(error: BaseException | None) -> list[Place]:
    """The frames that Dynamo was tracing when it raised ``error``, outermost first, those of libraries included.

    Without an exception of Dynamo's (torch 2.9 logs some graph breaks without raising) it is what is traced right now.
    """
    summaries = getattr(error, "real_stack", None)
    if summaries is None:
        summaries = _tracing_now()
    exact = {(name, file, line): where for name, file, line, where in _translators(error)}
    told = {(summary.name, summary.filename, summary.lineno) for summary in summaries}
    if (chain := _raised_in(error)) and chain[-1][:3] not in told:
        # PyTorch loses frames of generators that run while something else is inlined (``sum(f(v) for v in x)``).
        return [Place(file, plain_name(name), where) for name, file, _, where in chain]
    places = []
    for summary in summaries:
        name, file, line = summary.name, summary.filename, summary.lineno or 1
        where = exact.get((name, file, line)) or _range_from_columns(
            file, line, getattr(summary, "colno", None), getattr(summary, "end_colno", None)
        )
        places.append(Place(file, plain_name(name), where))
    return places


def _tracing_now() -> list[Any]:
    """Dynamo's own stack of the code that it is tracing; empty outside of a trace."""
    guards: Any = sys.modules.get("torch._guards")
    return list(guards.TracingContext.extract_stack()) if guards is not None else []


def innermost_user(places: list[Place]) -> int | None:
    """The index of the last place in the user's code."""
    return next((i for i in range(len(places) - 1, -1, -1) if places[i].is_user), None)


def related_to(places: list[Place], at: int) -> tuple[Related, ...]:
    """The other frames of a stack as related locations.

    First the library frame in which the cause lies, if it is one; then the calls in call order: the user's, the
    outermost first, and those of libraries on the way to the cause.
    """
    related = []
    deeper = places[at + 1 :]
    if deeper:
        last = next((place for place in reversed(deeper) if is_package_file(place.file)), deeper[-1])
        deeper.remove(last)
        related.append(Related(last.file, last.range, f"{CAUSE_IN_LIBRARY}, in `{last.function}` of a library"))
    callers = [place for place in places[:at] if place.is_user]
    related += [
        Related(place.file, place.range, f"called in {_named(place.function)}") for place in (*callers, *deeper)
    ]
    return tuple(related)


def _named(function: str) -> str:
    return "the script's main part" if function == "<module>" else f"`{function}`"


def plain_name(function: str) -> str:
    """``torch_dynamo_resume_in_forward_at_8`` is ``forward`` to the user."""
    if function.startswith(RESUME_PREFIX):
        return function[len(RESUME_PREFIX) :].rpartition("_at_")[0] or function
    return function


def _without_repeats(places: list[Place]) -> list[Place]:
    """Folds a frame and the resume function that it called: the later one is where the function is now."""
    folded: list[Place] = []
    for place in places:
        if folded and folded[-1].function == place.function and folded[-1].file == place.file:
            if folded[-1].range.start.line <= place.range.start.line and _same_function(folded[-1], place):
                folded.pop()
        folded.append(place)
    return folded


def _same_function(outer: Place, inner: Place) -> bool:
    """False for a function that calls itself: the resume function is never called where its own name stands."""
    from irscope.source import line_text

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
    """A range from instruction positions (columns in UTF-8 bytes); nothing where one of them is missing."""
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
    """Dynamo's translators with the exact range of the instruction each is at.

    They are found as ``self`` in the frames of ``torch/_dynamo/symbolic_convert.py``: those on the stack, and those
    that the exception and its causes passed through.  Checked on torch 2.13; where they look otherwise nothing is
    found, and the columns come from the exception's own stack.
    """
    frames = _live_frames()
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames += _frames_passed(error)
        error = error.__cause__ or error.__context__
    return _of_translators(frames)


def _raised_in(error: BaseException | None) -> list[_Traced]:
    """What was being traced where an exception was raised, outermost first; empty where it did not come from there."""
    passed = _frames_passed(error) if error is not None else []
    return list(_of_translators([*reversed(_live_frames()), *passed])) if any(_of_translators(passed)) else []


def _live_frames() -> list[types.FrameType]:
    frames: list[types.FrameType] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _frames_passed(error: BaseException) -> list[types.FrameType]:
    frames: list[types.FrameType] = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames


def _of_translators(frames: list[types.FrameType]) -> Iterator[_Traced]:
    done: set[int] = set()
    for frame in frames:
        if not frame.f_code.co_filename.endswith("symbolic_convert.py"):
            continue
        translator: Any = frame.f_locals.get("self")
        positions = getattr(getattr(translator, "current_instruction", None), "positions", None)
        code = getattr(translator, "f_code", None)
        if positions is None or code is None or id(translator) in done:
            continue
        done.add(id(translator))
        where = _range(
            code.co_filename, positions.lineno, positions.end_lineno, positions.col_offset, positions.end_col_offset
        )
        if where is not None:
            yield code.co_name, code.co_filename, int(getattr(translator, "lineno", where.start.line)), where


_FRAMES_OF_A_RECORD = 30


def shape_guard_is_checked() -> bool:
    """Whether the guard on symbolic sizes that a ``guard_added_fast`` tells of is one that is checked from then on.

    PyTorch tells of what it only looks up, while its guards are suppressed, in the same way (local variable ``prefix``
    of ``ShapeEnv._log_guard``; torch 2.9 to 2.15).  In lowering, where sizes that happen to be equal are compared, that
    is most of what it tells.
    """
    frame: types.FrameType | None = sys._getframe(1)
    for _ in range(_FRAMES_OF_A_RECORD):
        if frame is None:
            break
        if frame.f_code.co_name == "_log_guard":
            return "suppressed" not in str(frame.f_locals.get("prefix", ""))
        frame = frame.f_back
    return True
