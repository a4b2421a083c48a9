"""What no message may bring about: a traceback, a hang, growth, or something that is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from asking import Asking
from irscope.system import processes
from support import Instant, late

HANG_SECONDS = 2.0
GROWTH_BYTES = 200 << 20
_END_SECONDS = 10.0
_WAITING = 6
_LOOK_SECONDS = 0.1
_TRACEBACK = "Traceback (most recent call last)"


class FuzzError(AssertionError):
    """Something gave way; the message says what, and the folder that it names holds the last messages."""


@dataclass
class Judge:
    """Looks at one process.

    ``folder`` takes what was sent last, for a person to send it again.
    """

    pid: int
    folder: Path
    sent: list[bytes] = field(default_factory=list)
    owed: dict[str, bytes] = field(default_factory=dict)
    """The beginnings of requests that are not answered yet, by their IDs as JSON: 1 is not "1"."""
    _begin: int = 0

    def __post_init__(self) -> None:
        self._begin = processes.resident_bytes([self.pid])

    def note(self, data: bytes) -> None:
        """Keeps a message until the process has proven that it lives."""
        self.sent.append(data[:100_000])

    def owes(self, body: bytes, id_key: str = "id") -> None:
        """Notes the ID of a request, if this is one; `answers` takes it back."""
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(body)
            is_request = isinstance(message, dict) and ("method" in message or message.get("type") == "request")
            if is_request and type(message.get(id_key)) in ((int,) if id_key == "seq" else (int, str)):
                self.owed[json.dumps(message[id_key])] = body[:300]

    def answers(self, id: object) -> None:
        """Notes that an answer to the request with this ID has come."""
        self.owed.pop(json.dumps(id), None)

    def asks(self) -> Asking:
        """Now, after all messages that were noted."""
        return Asking(self.pid)

    def answered(self, asked: Asking, most: float = HANG_SECONDS) -> None:
        """After the answer to what was asked at that moment.

        Args:
            most: Seconds that it may take, however busy the machine is.
        """
        if seconds := asked.over(most):
            self.fail(f"no answer for {seconds:.1f} s")
        grown = processes.resident_bytes([self.pid]) - self._begin
        if grown > GROWTH_BYTES:
            self.fail(f"it holds {grown >> 20} MB more than at its beginning")
        del self.sent[:-200]

    def said(self, text: str) -> None:
        """What the process wrote on standard error."""
        if _TRACEBACK in text:
            self.fail(f"a traceback: …{text[text.index(_TRACEBACK) :][:3000]}")

    def fail(self, what: str) -> None:
        """Raises FuzzError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "last-messages").write_bytes(b"\n".join(self.sent))
        raise FuzzError(f"{what}; see {self.folder}/last-messages")


def nothing_left(mark: str, temporary: Path) -> None:
    """Raises FuzzError if a process that has the mark in its environment stays alive, or a file is left.

    Args:
        temporary: Was the folder for temporary files of what was looked at.
    """
    begun = Instant()
    while running := _marked(mark):
        if late(begun, _END_SECONDS):
            raise FuzzError(f"processes are left: {running}")
        time.sleep(0.05)
    if files := sorted(os.listdir(temporary)):
        raise FuzzError(f"files are left in {temporary}: {files[:10]}")


def _marked(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes() and processes.is_running(int(pid)):
                found.append(
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
                )
    return found


def until(seconds: float) -> Callable[[], bool]:
    """Whether this process and those below it have computed for so many seconds since now.

    A busy machine does not make it less.  Where the system does not tell, and where they only wait, the clock counts: at
    most `_WAITING` times as long.
    """
    own = os.getpid()
    begun, begun_at = processes.processor_seconds(own), time.monotonic()
    looked, over = begun_at, False

    def is_over() -> bool:
        nonlocal looked, over
        now = time.monotonic()
        if not over and now - looked > _LOOK_SECONDS:
            looked, spent = now, processes.processor_seconds(own)
            passed = now - begun_at
            over = passed > seconds if spent is None or begun is None else spent - begun > seconds
            over = over or passed > _WAITING * seconds
        return over

    return is_over
