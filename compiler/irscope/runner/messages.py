"""The way out of a run's process: one frame a message, over a descriptor that the script does not know."""

from __future__ import annotations

import os
import threading
from collections import deque

from irscope.protocol import CaptureGap, GapSeen, Message, StoreWrite, pack_message
from irscope.protocol.frames import LONGEST, frame
from irscope.runner.descriptors import identity, moved_up


class MessagePipe:
    """Sends messages; stops silently once the driver is gone, since the script must go on as without irscope.

    Where the script has closed the descriptor, whatever it has opened under that number is not written to.
    """

    def __init__(self, fd: int) -> None:
        self._fd = moved_up(fd)
        self._file = identity(self._fd)
        self._number = 0
        self._waiting: deque[bytes] = deque()
        self._lock = threading.RLock()
        self._is_writing = False

    @property
    def fd(self) -> int:
        """The descriptor that it writes to; -1 once it is closed."""
        return self._fd

    def send(self, message: Message | StoreWrite) -> None:
        """Send one message; after the first error, all are dropped."""
        if self._fd < 0:
            return
        try:
            payload = pack_message(message)
            if len(payload) > LONGEST:
                what = f"a message of {len(payload)} bytes ({type(message).__name__})"
                payload = pack_message(GapSeen(CaptureGap(what, "it is longer than irscope keeps")))
            self._waiting.append(payload)
            with self._lock:
                # A signal handler of the script's may come here in the middle of a write, and must not write into it.
                while self._waiting and not self._is_writing:
                    self._is_writing = True
                    try:
                        while self._waiting:
                            self._write(self._waiting.popleft())
                    finally:
                        self._is_writing = False
        except Exception:  # noqa: BLE001  the driver is gone, or the script has broken what this needs
            self._fd = -1

    def _write(self, payload: bytes) -> None:
        if self._fd < 0:
            return
        if identity(self._fd) != self._file:
            raise OSError("the script has closed the pipe")
        data = memoryview(frame(self._number, payload))
        self._number += 1
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        """In a forked child: only the parent speaks for the run."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
