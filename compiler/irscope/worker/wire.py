"""Requests with descriptors over a socket: a length, with which the descriptors travel, and that many bytes of JSON."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_HEADER = 8
_MOST_FDS = 4


def send(connection: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Raises OSError if the other side is gone."""
    data = json.dumps(message).encode("utf-8", "surrogateescape")
    socket.send_fds(connection, [len(data).to_bytes(_HEADER, "big")], list(fds))
    connection.sendall(data)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next request; None if the other side is gone."""
    try:
        header, fds, _, _ = socket.recv_fds(connection, _HEADER, _MOST_FDS)
        header += _exactly(connection, _HEADER - len(header)) if header else b""
        data = _exactly(connection, int.from_bytes(header, "big")) if header else b""
    except OSError:
        return None
    if not data:
        for fd in fds:
            os.close(fd)
        return None
    return json.loads(data), fds


def _exactly(connection: socket.socket, size: int) -> bytes:
    """Reads this many bytes; none of them if the other side goes away earlier."""
    data = b""
    while len(data) < size:
        more = connection.recv(min(size - len(data), 1 << 20))
        if not more:
            return b""
        data += more
    return data
