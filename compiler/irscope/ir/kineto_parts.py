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
from typing import IO

from irscope.ir.kineto import Event, Taker, TraceError, events_of

_LEAST_PART = 32 << 20
"""Bytes; a smaller trace is read faster than processes are started."""
_LONGEST_LOOK = 1 << 20
_TRIES = 200


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
    """The events of a part, as `irscope.ir.kineto.read_events` gives them.

    Raises
    ------
    TraceError
        The part does not end where an event does, or the trace is damaged.
    """
    with open(path, "rb") as file:
        is_last = end == os.fstat(file.fileno()).st_size
        try:
            yield from events_of(_Part(file, begin, end, is_last), left_out, is_part=not is_last, taker=taker)
        except UnicodeDecodeError as error:
            raise TraceError(f"{path} cannot be read as a trace: {error}.") from error


class _Part:
    """A part as a whole list of events: what is missing before and after it is put there."""

    def __init__(self, file: IO[bytes], begin: int, end: int, is_last: bool) -> None:
        self._file, self._left = file, end - begin
        self._before, self._after = "[" if begin else "", "" if is_last else "]"
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        file.seek(begin)

    def read(self, size: int, /) -> str:
        """At most so many bytes as text."""
        data = self._file.read(min(size, self._left))
        self._left = self._left - len(data) if data else 0
        text = self._before + self._decoder.decode(data, final=not self._left)
        self._before = ""
        if not self._left:
            text, self._after = text + self._after, ""
        return text


def _cut(file: IO[bytes], near: int) -> int | None:
    """Where after a place an event seems to begin."""
    file.seek(near)
    data, at = file.read(_LONGEST_LOOK), 0
    for _ in range(_TRIES):
        at = data.find(b"{", at + 1)
        if at < 0:
            return None
        if data[:at].rstrip().endswith(b",") and _is_event(data, at):
            return near + at
    return None


def _is_event(data: bytes, at: int) -> bool:
    try:
        found, _ = json.JSONDecoder().raw_decode(data[at : at + 20_000].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "ph" in found
