"""Parts of a large trace of PyTorch's profiler, which several processes read.

A part begins and ends where an event does.  Where that is, can only be guessed from the bytes around; but if a part ends inside
an event, it does not end as a list does, and the reader of that part says so.  So what is read is right, or is an error.
"""

from __future__ import annotations

import codecs
import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from irscope.ir.kineto import Event, Taker, TraceError, events_of

_LEAST_PART = 32 << 20
"""Bytes; a smaller trace is read faster than processes are started."""
LONGEST_LOOK = 1 << 20
"""Bytes in which an event has to begin."""
_LONGEST_GAP = 1000
"""Bytes between two events."""
_TRIES = 200


class PartError(TraceError):
    """A part cannot be read by itself; the whole trace may be fine."""


def parts_of(path: str, most: int) -> list[tuple[int, int]]:
    """Begin and end of at most so many parts, in bytes; none if the trace is small or packed.  Raises OSError."""
    size = os.path.getsize(path)
    count = min(most, size // _LEAST_PART)
    if count < 2:
        return []
    with open(path, "rb") as file:
        if file.read(2) == b"\x1f\x8b":
            return []
        cuts = [_cut(file, size * number // count) for number in range(1, count)]
    known = sorted({cut for cut in cuts if cut is not None})
    return list(zip([0, *known], [*known, size], strict=True))


def read_part(path: str, begin: int, end: int, left_out: Counter[str], taker: Taker | None = None) -> Iterator[Event]:
    """The events of a part, as `irscope.ir.kineto.read_events` gives them.  Raises as `Part.events`."""
    with open(path, "rb") as file:
        is_last = end == os.fstat(file.fileno()).st_size
        yield from Part(file, begin, end, not begin, is_last).events(left_out, taker)


class Bytes(Protocol):
    """What a part is in: a file, or memory."""

    def seek(self, at: int, /) -> object:
        """Goes to a place."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class Part:
    """A part as a whole list of events: what is missing before and after it is put there."""

    def __init__(self, file: Bytes, begin: int, end: int, is_first: bool, is_last: bool) -> None:
        self._file, self._left, self._is_last = file, end - begin, is_last
        self._before, self._after = "" if is_first else "[", "" if is_last else "]"
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        file.seek(begin)

    def events(self, left_out: Counter[str], taker: Taker | None = None) -> Iterator[Event]:
        """What is in it.

        Raises:
            PartError: The part does not end where an event does, or the trace is damaged.
            TraceError: This is the last part.  If the others could be read, the trace is damaged.
        """
        try:
            yield from events_of(self, left_out, is_part=not self._is_last, taker=taker)
        except UnicodeDecodeError as error:
            raise PartError(str(error)) from error
        except TraceError as error:
            if self._is_last:
                raise
            raise PartError(str(error)) from error

    def read(self, size: int, /) -> str:
        """At most so many bytes as text."""
        data = self._file.read(min(size, self._left))
        self._left = self._left - len(data) if data else 0
        text = self._before + self._decoder.decode(data, final=not self._left)
        self._before = ""
        if not self._left:
            text, self._after = text + self._after, ""
        return text


def _cut(file: Bytes, near: int) -> int | None:
    """Where after a place an event seems to begin."""
    file.seek(near)
    data, at = file.read(LONGEST_LOOK), 0
    for _ in range(_TRIES):
        at = data.find(b"{", at + 1)
        if at < 0:
            return None
        if _begins(data, at):
            return near + at
    return None


def last_cut(data: bytes) -> int | None:
    """Where the last event seems to begin that also ends in these bytes."""
    at = len(data)
    for _ in range(_TRIES):
        at = data.rfind(b"{", 1, at)
        if at < 0:
            return None
        if _begins(data, at):
            return at
    return None


def _begins(data: bytes, at: int) -> bool:
    """Whether an event seems to begin at a place."""
    if not data[max(0, at - _LONGEST_GAP) : at].rstrip().endswith(b","):
        return False
    try:
        found, _ = json.JSONDecoder().raw_decode(data[at : at + 20_000].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "ph" in found
