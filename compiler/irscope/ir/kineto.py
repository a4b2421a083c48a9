"""Traces of PyTorch's profiler (Kineto), as its ``export_chrome_trace`` writes them: the events, read one by one.

A trace may come from elsewhere and have hundreds of megabytes.  So it is never parsed as a whole: the reader holds one block
of text and gives one event after the other, without what nobody asks for.  What is too long, too deep or not a number is
an error with a sentence.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from irscope.vocabulary.bounds import MOST_SECONDS

_BLOCK = 1 << 22
_TRIES = 3
"""How many places are tried to cut a block between two events."""
_BETWEEN = re.compile(r"[ \t\r\n,]*")
"""What is between two events; a hostile trace has gigabytes of it."""
_END, _MORE = object(), object()
_LONGEST_EVENT = 1 << 20
"""Characters.  Kineto writes the stacks of an operator into its event, which are some thousands."""
_LONGEST_HEAD = 1 << 24
"""Characters before the events: the properties of devices."""
MOST_EVENTS = 10_000_000
MOST_MICROSECONDS = MOST_SECONDS * 1e6
"""An event with a time beyond it is left out: sums would not be finite."""
MOST_CHARACTERS = 8 << 30
LONGEST_NAME = 2000
LONGEST_WORD = 80
"""Characters of a category, or of half the name of a row."""
_KEPT = ("External id", "correlation", "Sequence number", "kernel_file", "stream")


class TraceError(Exception):
    """A file is not a trace, or is too large; the message says which."""


class Event(NamedTuple):
    """Something that took time.

    Args:
        category: Kineto's: ``cpu_op``, ``user_annotation``, ``kernel``, ``cuda_runtime``, ``python_function``, …
        start, seconds: In seconds; the start counts from wherever the trace's clock does.
        thread: The row of the trace that it is in: process and thread, or device and stream.
        args: What Kineto says beside: ``External id``, ``correlation``, ``Sequence number``, ``kernel_file``,
            ``stream``.
    """

    name: str
    category: str
    start: float
    seconds: float
    thread: tuple[str, str]
    args: dict[str, Any]


Taker = Callable[[str], bool]
"""Takes the events of a JSON list, which is a part of a trace, and says whether it could."""


def read_events(path: str, left_out: Counter[str] | None = None, taker: Taker | None = None) -> Iterator[Event]:
    """The events of a trace that have a duration, in the order of the file.

    Args:
        left_out: Counts what is left out, by why.
        taker: May take blocks of events, at their place in the order; the others are given here.

    Raises:
        TraceError: It is not a trace, is damaged, or has more than `MOST_EVENTS` events.
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rt", encoding="utf-8") if packed else open(path, encoding="utf-8") as text:
            yield from events_of(text, Counter() if left_out is None else left_out, taker=taker)
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path} cannot be read as a trace: {error}.") from error


class Text(Protocol):
    """What a trace is read from."""

    def read(self, size: int, /) -> str:
        """At most so many characters; an empty text at the end."""


def events_of(text: Text, left_out: Counter[str], is_part: bool = False, taker: Taker | None = None) -> Iterator[Event]:
    """Like `read_events`; nothing may come after the list of events of a part.  Raises TraceError."""
    names: dict[str, str] = {}
    for number, raw in enumerate(_objects(text, is_part, taker)):
        if number >= MOST_EVENTS:
            raise TraceError(f"The trace has more than {MOST_EVENTS} events.")
        if not isinstance(raw, dict):
            left_out["not an object"] += 1
        elif raw.get("ph") == "X":
            event = _event(raw, names)
            if event is None:
                left_out["no time, or an invalid one"] += 1
            else:
                yield event


def _event(raw: dict[str, Any], names: dict[str, str]) -> Event | None:
    start, duration, args = raw.get("ts"), raw.get("dur", 0), raw.get("args")
    if not isinstance(start, (int, float)) or not isinstance(duration, (int, float)):
        return None
    if isinstance(start, bool) or isinstance(duration, bool):
        return None
    if not (-MOST_MICROSECONDS <= start <= MOST_MICROSECONDS and 0 <= duration <= MOST_MICROSECONDS):
        return None
    name = str(raw.get("name", ""))[:LONGEST_NAME]
    kept = {key: args[key] for key in _KEPT if key in args} if args and isinstance(args, dict) else {}
    category = str(raw.get("cat", ""))[:LONGEST_WORD]
    return made((names.setdefault(name, name), names.setdefault(category, category), start / 1e6, duration / 1e6,
                 row(raw.get("pid", ""), raw.get("tid", "")), kept))  # fmt: skip


made = functools.partial(tuple.__new__, Event)
"""What ``Event(…)`` does, without a call in Python for each of millions."""


def row(process: Any, thread: Any) -> tuple[str, str]:
    """The row of an event, as `Event` has it."""
    return str(process)[:LONGEST_WORD], str(thread)[:LONGEST_WORD]


def _objects(text: Text, is_part: bool, taker: Taker | None) -> Iterator[Any]:
    """The elements of the list of events, one by one.

    As many as end in a block are parsed at once, which is twice as fast; if that does not go, each by itself.
    """
    decoder = json.JSONDecoder()
    block, at, seen = _begun(text)
    is_new = True
    while True:
        if is_new:
            whole, at = _whole_events(block, at, taker)
            yield from whole
            is_new = False
        value, at = _one_event(decoder, block, at)
        if value is _END:
            if is_part and (block[at + 1 :] or text.read(1)):
                raise TraceError("The list of events ends before the part does.")
            return
        if value is _MORE:  # it ends in the next block, or is damaged
            more = text.read(_BLOCK) if len(block) - at <= _LONGEST_EVENT else ""
            seen += len(more)
            if not more or seen > MOST_CHARACTERS:
                raise TraceError("The trace is damaged or cut off in its list of events.")
            block, at, is_new = block[at:] + more, 0, True
        else:
            yield value


def _whole_events(block: str, at: int, taker: Taker | None) -> tuple[list[Any], int]:
    """The events that end in a block, and where the next one begins; none if they are taken, or if the block is not only events."""
    end = len(block)
    for _ in range(_TRIES):
        if (end := block.rfind("{", at, end)) <= at:
            break
        comma = block.rfind(",", at, end)
        if comma > at and not block[comma + 1 : end].strip():
            events = f"[{block[at:comma]}]"
            if taker is not None and taker(events):
                return [], end
            try:
                return json.loads(events), end
            except (ValueError, RecursionError):
                pass
    return [], at


def _one_event(decoder: json.JSONDecoder, block: str, at: int) -> tuple[Any, int]:
    """The next one, `_END` after the last one, or `_MORE` if it does not end in this block; and where it ends."""
    at = _next(block, at)
    if at < len(block) and block[at] == "]":
        return _END, at
    try:
        return decoder.raw_decode(block, at)
    except RecursionError as error:
        raise TraceError("An event of the trace is nested too deep.") from error
    except ValueError:
        return _MORE, at


def _begun(text: Text) -> tuple[str, int, int]:
    """The first block, and where in it the list of events begins."""
    block = text.read(_BLOCK)
    if block.lstrip()[:1] == "[":
        return block, block.index("[") + 1, len(block)
    while True:
        key = block.find('"traceEvents"')
        begin = block.find("[", key) if key >= 0 else -1
        if begin >= 0 and block[key + len('"traceEvents"') : begin].strip() == ":":
            return block, begin + 1, len(block)
        more = text.read(_BLOCK) if len(block) < _LONGEST_HEAD else ""
        if not more:
            raise TraceError('This is not a trace from PyTorch\'s profiler: it has no list "traceEvents".')
        block += more


def _next(block: str, at: int) -> int:
    """After spaces and the comma between two events."""
    found = _BETWEEN.match(block, at)
    return found.end() if found else at
