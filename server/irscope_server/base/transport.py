"""The protocol's end of standard input and output.

pygls reads standard input in the thread pool that its threaded handlers share; one slow handler then stops the
reading, and the pool has to be waited for at exit.  Here one daemon thread reads, and everything else happens on
the event loop.  A frame that is broken is answered or logged, and the next one is looked for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from irscope_server.base.bodies import LARGEST_BODY, BrokenBody, read_message

if TYPE_CHECKING:
    import asyncio  # the debug adapter does without

log = logging.getLogger(__name__)

_LENGTH = re.compile(rb"Content-Length:[ \t]*(\d+)[ \t]*\r?\n$", re.IGNORECASE)
"""Not anchored at the start: after a body that was longer than its header said, its rest is before ours."""

END: Final = object()

MessageHandler = Callable[[Any], None]


def read_frame(stream: BinaryIO, id_key: str = "id") -> Any:
    """The next message, or a `BrokenBody`; `END` at the end of the stream."""
    length: int | None = None
    while True:
        header = stream.readline(65536)
        if not header:
            return END
        if match := _LENGTH.search(header):
            digits = match[1].lstrip(b"0") or b"0"
            length = int(digits) if len(digits) < 20 else LARGEST_BODY + 1  # `int` refuses thousands of digits
        elif not header.strip() and length is not None:
            if length > LARGEST_BODY:
                return BrokenBody(f"more than {LARGEST_BODY} bytes")
            body = stream.read(length)
            return read_message(body, id_key) if len(body) == length else END


def read_forever(
    stream: BinaryIO, loop: asyncio.AbstractEventLoop, handle: MessageHandler, ended: Callable[[], None]
) -> None:
    """Starts the thread that reads messages from a stream and calls back on the loop, until the stream ends."""

    def read() -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # closed stream, closed loop
            while (message := read_frame(stream)) is not END:
                loop.call_soon_threadsafe(handle, message)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended)

    threading.Thread(target=read, name="irscope-stdin", daemon=True).start()


class Writer:
    """Writes frames to the protocol's standard output.

    When the client is gone, writing does nothing; the end of standard input ends the server.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._broken = False

    def write(self, data: bytes) -> None:
        """Write all bytes and flush.  After the first error, everything is dropped silently."""
        if self._broken:
            return
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError):
            self._broken = True

    def close(self) -> None:
        """Left open: the process is about to end, and something may still want to say goodbye."""


def take_protocol_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private duplicates of standard input and output for the protocol.

    Descriptor 0 is then empty and descriptor 1 is standard error, so whatever prints or reads by mistake
    (a library, a child process) does no harm to the protocol.
    """
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(0, os.O_BINARY)
        msvcrt.setmode(1, os.O_BINARY)
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  for the life of the process
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    return stdin, stdout
