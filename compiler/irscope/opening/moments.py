"""What the records of a trace tell about the stack on which they were written."""

from __future__ import annotations

import re
from typing import Any

from irscope.events.printed_frames import FRAME, range_of
from irscope.events.stack import FramePlace, Told
from irscope.events.trace import GRAPH_BREAK, Record
from irscope.usercode.source import function_at, range_of_focus, range_of_node, read_source
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.function_names import RESUME_PREFIX, plain_name

_STACK = re.compile(r"^(?:User code traceback:|from user code:|User stack:)\s*$", re.MULTILINE)
_STACK_ENDS = re.compile(r"^(?:Traceback \(most recent call last\):|Set TORCH|\S)", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):", re.MULTILINE)
_ERROR = re.compile(r"^(?P<type>(?:[\w.]+\.)?(?P<name>[A-Z]\w*)): ", re.MULTILINE)
_WRAPPER = "torch/_dynamo/eval_frame.py"
_MOST_FRAMES = 2000
_DUNDERS = re.compile(r"__\w+__")


class Moments:
    """Knows the stacks of the compiles of one trace, and answers for each of its records."""

    def __init__(self) -> None:
        self.files: dict[object, str] = {}
        """The interned strings, by number."""
        self._calls: dict[str, tuple[tuple[FramePlace, ...], FramePlace | None]] = {}
        self._functions: dict[str, tuple[str, str, int]] = {}
        self._broken: set[tuple[str, int]] = set()

    def frames(self, stack: object) -> list[dict[str, Any]]:
        """The frames of a stack in metadata, with the names of their files."""
        found = [frame for frame in stack if isinstance(frame, dict)] if isinstance(stack, list) else []
        return [
            {
                "filename": self._file(frame.get("filename")), "name": str(frame.get("name", "")),
                "line": frame.get("line") or 1,
                "loc": str(frame.get("loc") or ""),
            }
            for frame in found[-_MOST_FRAMES:]
        ]  # fmt: skip

    def _file(self, name: object) -> str:
        return self.files.get(name, "") if isinstance(name, int) else str(name or "")

    def begins(self, compile: str, frames: list[dict[str, Any]]) -> None:
        """A compile begins, with this stack above the function."""
        above, last = frames[:-1], frames[-1] if frames else {}
        live = tuple(_place(frame) for frame in above if is_user_file(frame["filename"]))
        wrapper = next((i for i in range(len(above) - 1, -1, -1) if _is_wrapper(above[i])), len(above))
        callers = [frame for frame in above[:wrapper] if is_user_file(frame["filename"])]
        self._calls[compile] = live, (_place(callers[-1]) if callers else None)
        name = plain_name(str(last.get("name", "")))
        self._functions[compile] = str(last.get("filename", "")), name, int(last.get("line", 1))

    def of(self, record: Record) -> Told:
        """The moment of a record."""
        live, call = self._calls.get(record.compile or "", ((), None))
        if record.event == GRAPH_BREAK:
            self._broken.add((record.compile or "", record.attempt))
            above, traced = self._split(record.compile, _printed(record.payload))
            return Told(above or live, traced, call)
        if record.event == "dynamo_error":
            return self._of_error(record, live, call)
        traced = tuple(_place(frame) for frame in self.frames(record.facts.get("user_stack")))
        above, traced = self._split(record.compile, traced)
        return Told(above or live, traced, call)

    def _split(
        self, compile: str | None, places: tuple[FramePlace, ...]
    ) -> tuple[tuple[FramePlace, ...], tuple[FramePlace, ...]]:
        """The frames above the function that is compiled, and the others, which are traced."""
        function = self._functions.get(compile or "", ("", "", 1))
        begin = next(
            (i for i, place in enumerate(places) if (place.file, plain_name(place.function)) == function[:2]), 0
        )  # fmt: skip
        return tuple(place for place in places[:begin] if place.is_user), places[begin:]

    def _of_error(self, record: Record, live: tuple[FramePlace, ...], call: FramePlace | None) -> Told:
        # If errors led to each other, the last one is in flight.
        begin = max((one.start() for one in _TRACEBACK.finditer(record.payload)), default=0)
        mark = _ERROR.search(record.payload, begin)
        name = mark["name"] if mark else "Exception"
        if name.startswith("_") or _DUNDERS.search(name):
            name = "Exception"
        text = record.payload[mark.end() :] if mark else record.payload
        error: Any = type(name, (Exception,), {})(text.strip())
        error.logged = (record.compile or "", record.attempt) in self._broken
        above, traced = self._split(record.compile, _printed(text) or self._at_the_end(record.compile))
        return Told(above or live, traced, call, error, self._allows_no_break(record.compile))

    def _at_the_end(self, compile: str | None) -> tuple[FramePlace, ...]:
        """The last statement of the function: an error of the backend comes when all is traced, and names no line."""
        file, function, line = self._functions.get(compile or "", ("", "", 1))
        node = function_at(file, function, line)
        if not file or node is None or not isinstance(node.body, list):
            return ()
        return (FramePlace(file, function, range_of_node(file, node.body[-1])),)

    def _allows_no_break(self, compile: str | None) -> bool:
        """No record says so.  Where the sources are here they do; else an error that left no break is taken for one."""
        live, _ = self._calls.get(compile or "", ((), None))
        file, *_ = self._functions.get(compile or "", ("", "", 1))
        texts = [read_source(name) for name in {file, *(place.file for place in live)} if name and is_user_file(name)]
        return not any(texts) or any("fullgraph" in text or "error_on_graph_break" in text for text in texts)


def _place(frame: dict[str, Any]) -> FramePlace:
    file, line, name = frame["filename"], frame["line"], frame["name"]
    return FramePlace(file, plain_name(name), range_of_focus(file, line), name.startswith(RESUME_PREFIX))


def _is_wrapper(frame: dict[str, Any]) -> bool:
    return str(frame["filename"]).replace("\\", "/").endswith(_WRAPPER)


def _printed(text: str) -> tuple[FramePlace, ...]:
    """The user's stack that a message ends with, outermost first."""
    begins = list(_STACK.finditer(text))
    if not begins:
        return ()
    begin = begins[-1]
    end = _STACK_ENDS.search(text, begin.end() + 1)
    part = text[begin.end() : end.start() if end else len(text)]
    places = []
    for match in FRAME.finditer(part):
        name = match["function"]
        resumes = name.startswith(RESUME_PREFIX)
        places.append(FramePlace(match["file"], plain_name(name), range_of(match), resumes))
    return tuple(places[-_MOST_FRAMES:])
