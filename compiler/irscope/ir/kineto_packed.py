"""A large trace of PyTorch's profiler that is packed with gzip: one process unpacks it into parts, which others read.

The parts are in memory that the processes share, so nothing is copied to them and no file is left behind.  As in
`irscope.ir.kineto_parts`, what is read from them is right, or is an error.
"""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import NamedTuple

from irscope.ir.kineto import MOST_CHARACTERS, Event, Taker
from irscope.ir.kineto_parts import LONGEST_LOOK, Part, PartError, last_cut

_LEAST_PACKED = 4 << 20
"""Bytes, which are some 40 MB of text; a smaller trace is read faster than processes are started."""
_ROOM = 1 << 23
"""Bytes of the longest part."""
_READ = 1 << 18


class Place(NamedTuple):
    """Where a part is in the shared memory, in bytes."""

    begin: int
    end: int
    is_first: bool
    is_last: bool


def is_large_packed(path: str) -> bool:
    """Whether several processes should read it.  Raises OSError."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b" and os.fstat(file.fileno()).st_size >= _LEAST_PACKED


class PackedParts:
    """The parts of a packed trace, for a ``with`` statement.

    Args:
        ahead: For how many parts there is room.  A part is overwritten when so many others have been made.
    """

    def __init__(self, path: str, ahead: int) -> None:
        self._path, self._ahead = path, ahead
        self._memory = mmap.mmap(-1, ahead * _ROOM)

    def __enter__(self) -> PackedParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._memory.close()

    def places(self) -> Generator[Place, None, None]:
        """Where each part is, when it has been unpacked.

        Raises:
            PartError: The file is damaged, or no place is found where a part may end.
            OSError: The file cannot be read.
        """
        rest, number, unpacked, is_last = b"", 0, 0, False
        try:
            with gzip.open(self._path) as stream:
                while not is_last:
                    begin = number % self._ahead * _ROOM
                    end, is_last = self._filled(begin, rest, stream)
                    unpacked += end - begin
                    if unpacked > MOST_CHARACTERS:
                        raise PartError("The trace is too long.")
                    cut = end if is_last else self._cut(begin, end)
                    rest = self._memory[cut:end]
                    yield Place(begin, cut, number == 0, is_last)
                    number += 1
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise PartError(f"{self._path} cannot be read as a trace: {error}.") from error

    def read(self, place: Place, left_out: Counter[str], taker: Taker | None = None) -> Iterator[Event]:
        """The events of a part, in this process or a fork of it.  Raises as `Part.events`."""
        part = Part(self._memory, place.begin, place.end, place.is_first, place.is_last)
        yield from part.events(left_out, taker)

    def _filled(self, begin: int, rest: bytes, stream: gzip.GzipFile) -> tuple[int, bool]:
        """Where what has been unpacked ends, and whether nothing comes after it."""
        at = begin + len(rest)
        self._memory[begin:at] = rest
        while at < begin + _ROOM:
            # Not more at once: it is copied while it is still in the processor's cache.
            data = stream.read(min(_READ, begin + _ROOM - at))
            if not data:
                return at, True
            self._memory[at : at + len(data)] = data
            at += len(data)
        return at, False

    def _cut(self, begin: int, end: int) -> int:
        first = max(begin, end - LONGEST_LOOK)
        if (cut := last_cut(self._memory[first:end])) is None:
            raise PartError("No event seems to begin in a part of the trace.")
        return first + cut
