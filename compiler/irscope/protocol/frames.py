"""How messages lie on the pipe between a run's process and its driver.

A script can write into any descriptor of its process, so a pipe is as writable as a file.  Each message is a *frame*: a
mark, its length, its number, a checksum of these, a checksum of the payload, and the payload.  A reader that meets
something else goes on at the next whole frame, and knows how many it has missed by their numbers.

A checksum guards against accidents.  A script that means to forge a frame can: it is in the same process.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from irscope.vocabulary.records import dataclass

MARK = b"\xf5irf"
_HEAD = struct.Struct(">IQ")  # length of the payload, number of the frame
_CHECK = struct.Struct(">I")
_HEAD_SIZE = len(MARK) + _HEAD.size + 2 * _CHECK.size
LONGEST = 1 << 29
"""The most bytes of a payload.  A head that claims more is not one."""


def frame(number: int, payload: bytes) -> bytes:
    """The bytes of a frame; ``number`` counts the frames of a pipe from 0."""
    head = MARK + _HEAD.pack(len(payload), number)
    return head + _CHECK.pack(zlib.crc32(head)) + _CHECK.pack(zlib.crc32(payload)) + payload


@dataclass(frozen=True)
class Payload:
    """What is in a whole frame.

    Args:
        missed: How many frames should have come before it and did not; also 1 for a number that is lower than expected.
    """

    data: bytes
    missed: int


class FrameReader:
    """Takes bytes as they come and gives whole frames, and what lies between them.

    Time is linear in the bytes.  What is kept is at most one frame that has begun with a valid head.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._needed = _HEAD_SIZE
        self._next = 0

    def feed(self, data: bytes) -> Iterator[Payload | bytes]:
        """What is complete now: payloads of frames, and bytes that belong to none."""
        self._bytes += data
        while len(self._bytes) >= self._needed:
            at = self._bytes.find(MARK)
            if at < 0:
                at = len(self._bytes) - len(MARK) + 1  # a mark may have begun
            if at > 0:
                yield self._taken(at)
                continue
            size = self._frame_size()
            if size is None:
                yield self._taken(len(MARK))
            elif len(self._bytes) < size:
                self._needed = size
                return
            elif (payload := self._payload(size)) is not None:
                yield payload
            else:
                yield self._taken(len(MARK))

    def rest(self) -> Iterator[Payload | bytes]:
        """When nothing more comes: frames behind one that is not complete, and what is left."""
        while self._bytes:
            if len(self._bytes) >= _HEAD_SIZE and self._bytes.startswith(MARK):
                yield self._taken(len(MARK))  # of a frame that is not complete
                yield from self.feed(b"")
            else:
                at = self._bytes.find(MARK, 1)
                yield self._taken(at if at > 0 else len(self._bytes))
                yield from self.feed(b"")

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._bytes[:count])
        del self._bytes[:count]
        self._needed = _HEAD_SIZE
        return taken

    def _frame_size(self) -> int | None:
        """The size of the frame at the beginning, with its head; None if that head is not valid."""
        checked = len(MARK) + _HEAD.size
        head = bytes(self._bytes[:checked])
        length, _ = _HEAD.unpack_from(head, len(MARK))
        (check,) = _CHECK.unpack_from(self._bytes, checked)
        return None if check != zlib.crc32(head) or length > LONGEST else _HEAD_SIZE + length

    def _payload(self, size: int) -> Payload | None:
        """The frame at the beginning, which is complete; None if its payload is damaged."""
        (check,) = _CHECK.unpack_from(self._bytes, len(MARK) + _HEAD.size + _CHECK.size)
        data = bytes(memoryview(self._bytes)[_HEAD_SIZE:size])
        if zlib.crc32(data) != check:
            return None
        _, number = _HEAD.unpack_from(self._bytes, len(MARK))
        self._taken(size)
        missed = number - self._next if number >= self._next else 1
        self._next = number + 1
        return Payload(data, missed)
