"""The connection of a process that the script has started with the driver, which answers with the request of the run."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

from irscope.protocol import FactsWritten, RunRequest, from_json
from irscope.runner.messages import MessagePipe
from irscope.vocabulary.visible import bounded

_SECONDS = 10.0
"""For the driver to answer."""
LENGTH = struct.Struct(">I")
"""The length of the request in front of it; 0: the driver follows no more processes."""
_LONGEST_TITLE = 200


def joined(address: str) -> tuple[RunRequest, MessagePipe] | None:
    """The request for a process, and the way out of it; None if the driver is gone or wants no more processes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(address)
            (length,) = LENGTH.unpack(_read(connection, LENGTH.size))
            text = _read(connection, length)
        except (OSError, struct.error):
            return None
        if not text:
            return None
        connection.settimeout(None)
        return from_json(RunRequest, json.loads(text)), MessagePipe(connection.detach())


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        if not (part := connection.recv(min(1 << 20, length - len(data)))):
            raise OSError("the driver has closed the connection")
        data += part
    return data


def process_facts() -> FactsWritten:
    """Which process this is: its number, that of its parent, and a title."""
    return FactsWritten(
        {"process": {"pid": os.getpid(), "parent": os.getppid(), "title": bounded(_title(), _LONGEST_TITLE)}}
    )


def _title() -> str:
    """The name that multiprocessing has for it, else its command line."""
    processes = sys.modules.get("multiprocessing.process")
    name = processes.current_process().name if processes is not None else "MainProcess"
    if name != "MainProcess":
        return str(name)
    script, *arguments = getattr(sys, "argv", None) or [""]
    return " ".join([os.path.basename(script) or "python", *arguments])
