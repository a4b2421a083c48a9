"""A trace of PyTorch's profiler that is packed with gzip: it is unpacked in a thread, one block ahead of who reads it.

`gzip` unpacks some kilobytes at once and needs Python's lock in between, for which it waits while the other thread parses.
Here a whole block is unpacked without the lock.
"""

from __future__ import annotations

import codecs
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import IO

_READ = 1 << 20
_GZIP = 31
"""What `zlib` calls a window of 32 kB with the header and the checksum of gzip."""


class PackedText:
    """The text of a file that is packed with gzip, for a ``with`` statement.

    Raises EOFError if it is cut off, zlib.error if it is damaged, and UnicodeDecodeError if its bytes are not UTF-8.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._unpacker, self._packed = zlib.decompressobj(_GZIP), b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._thread = ThreadPoolExecutor(1)
        self._ahead: Future[bytes] | None = None

    def __enter__(self) -> PackedText:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._thread.shutdown(cancel_futures=True)

    def read(self, size: int, /) -> str:
        """The text of so many bytes; an empty text at the end."""
        text, is_end = "", False
        while not text and not is_end:
            data = self._ahead.result() if self._ahead is not None else self._unpacked(size)
            is_end = not data
            self._ahead = None if is_end else self._thread.submit(self._unpacked, size)
            text = self._decoder.decode(data, final=is_end)
        return text

    def _unpacked(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        while True:
            if self._unpacker.eof:  # another packed file may follow
                self._packed = (self._unpacker.unused_data + self._file.read(_READ)).lstrip(b"\0")
                if not self._packed:
                    return b""
                self._unpacker = zlib.decompressobj(_GZIP)
            elif not self._packed and not (more := self._file.read(_READ)):
                raise EOFError("the file ends before what is packed in it")
            elif not self._packed:
                self._packed = more
            data = self._unpacker.decompress(self._packed, size)
            self._packed = self._unpacker.unconsumed_tail
            if data:
                return data
