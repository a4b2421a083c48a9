"""What a script prints, on its way to the client: in few messages, and not without limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_PAUSE = 0.05
_MOST = 64 * 1024
"""Characters per message and stream; a script that prints in a tight loop must not fill the client's memory."""


class OutputRelay:
    """Collects pieces of output and passes them on a few times a second."""

    def __init__(self, send: Callable[[str, str], None]) -> None:
        self._send = send
        self._pieces: list[tuple[str, str]] = []
        self._sizes: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream: str, text: str) -> None:
        size = self._sizes.get(stream, 0)
        self._sizes[stream] = size + len(text)
        if size < _MOST:
            self._pieces.append((stream, text[: _MOST - size]))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self.flush)

    def flush(self) -> None:
        """Sends what has been collected, pieces of one stream that follow each other as one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pieces, sizes = self._pieces, self._sizes
        self._pieces, self._sizes = [], {}
        for stream, size in sizes.items():
            if size > _MOST:
                pieces.append((stream, f"\n[irscope: {size - _MOST} more characters are not shown]\n"))
        merged: list[tuple[str, str]] = []
        for stream, text in pieces:
            if merged and merged[-1][0] == stream:
                merged[-1] = (stream, merged[-1][1] + text)
            else:
                merged.append((stream, text))
        for stream, text in merged:
            self._send(stream, text)
