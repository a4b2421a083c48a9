"""The way out of a run's process: one JSON object a line, over a descriptor that the script does not know."""

from __future__ import annotations

import os
from json import dumps

from irscope.protocol import Message, encode_message
from irscope.runner.descriptors import moved_up


class MessagePipe:
    """Sends messages; stops silently once the driver is gone, since the script must go on as without irscope."""

    def __init__(self, fd: int) -> None:
        self._fd = moved_up(fd)

    @property
    def fd(self) -> int:
        """The descriptor that it writes to; -1 once it is closed."""
        return self._fd

    def send(self, message: Message) -> None:
        """Send one message; after the first error, all are dropped."""
        try:
            data = (dumps(encode_message(message)) + "\n").encode("utf-8", "backslashreplace")
            while data and self._fd >= 0:
                data = data[os.write(self._fd, data) :]
        except Exception:  # noqa: BLE001  the driver is gone, or the script has broken what this needs
            self._fd = -1

    def close(self) -> None:
        """In a forked child: only the parent speaks for the run."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
