"""The line on the terminal that says what a run is doing."""

from __future__ import annotations

import sys
import time

from irscope.cli.text import Paint, terminal_width
from irscope.protocol import CompileSeen, FindingSeen, Message, Progress, ScriptEnded, Started
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable


class ProgressLine:
    """One line on stderr, rewritten in place and wiped before anything else is printed; it prints nothing if stderr is
    not a terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._paint = Paint(sys.stderr)
        self._began = time.monotonic()
        self._doing = "starting"
        self._compiles: set[str] = set()
        self._findings: set[object] = set()

    def see(self, message: Message) -> None:
        """Take in a message of the run and redraw the line."""
        if isinstance(message, Started):
            self._doing = f"running with torch {message.torch}"
        elif isinstance(message, Progress):
            self._doing = message.text
        elif isinstance(message, CompileSeen):
            self._compiles.add(message.compile.id)
        elif isinstance(message, FindingSeen):
            self._findings.add(message.finding.cause)
        elif isinstance(message, ScriptEnded):
            self._doing = "ending"
        self._draw()

    def _draw(self) -> None:
        if self._on:
            facts = f"{count(len(self._compiles), 'compile')}, {count(len(self._findings), 'finding')}"
            text = f"{time.monotonic() - self._began:4.0f} s  {facts}  {printable(self._doing)}"
            sys.stderr.write("\r\033[2K" + self._paint(text[: terminal_width() - 1], "dim"))
            sys.stderr.flush()

    def wipe(self) -> None:
        """Erase the line; does nothing if none is shown."""
        if self._on:
            sys.stderr.write("\r\033[2K")
            sys.stderr.flush()
