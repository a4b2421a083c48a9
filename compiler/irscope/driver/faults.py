"""The stack with which a signal ended a script's process, as Python's faulthandler writes it into the message pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.protocol import StackFrame
from irscope.vocabulary.patterns import pattern

_FATAL = b"Fatal Python error: "
_MOST_LINES = 10_000
_LONGEST_LINE = 4096
_FRAME = pattern(r'  File "(?P<file>.*)", line (?P<line>\d{1,9}) in (?P<function>.*)')
_THREAD = pattern(r"(?:Current thread|Thread|Stack)\b.*\(most recent call first\)")
_ESCAPED = pattern(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


class Faults:
    """Reads what is in the pipe beside messages.  The script can write there, too, so nothing is trusted."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = b""

    def feed(self, data: bytes) -> int:
        """Takes in bytes; returns how many of them cannot be of a fault."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._take(line)
        self._partial = self._partial[-_LONGEST_LINE:]
        return 0 if self._lines or _FATAL in self._partial else len(data)

    def _take(self, line: bytes) -> None:
        """A line; a new fault replaces the one before."""
        at = line.find(_FATAL)
        if at >= 0:
            self._lines = [line[at:].decode("utf-8", "replace")]
        elif self._lines and len(self._lines) < _MOST_LINES and len(line) <= _LONGEST_LINE:
            self._lines.append(line.decode("utf-8", "replace"))

    def stacks(self) -> list[tuple[StackFrame, ...]]:
        """The stacks of the threads, that of the thread with the fault first, each with the outermost frame first."""
        found = list(_stacks(self._lines))
        found.sort(key=lambda stack: not stack[0].startswith(("Current", "Stack")))
        return [tuple(reversed(frames)) for _, frames in found]


def _stacks(lines: Sequence[str]) -> Iterator[tuple[str, list[StackFrame]]]:
    head = ""
    frames: list[StackFrame] = []
    for line in lines:
        if _THREAD.match(line):
            if head:
                yield head, frames
            head, frames = line, []
        elif head and (match := _FRAME.fullmatch(line)):
            frames.append(StackFrame(_plain(match["file"]), int(match["line"]), _plain(match["function"])))
        elif head and frames and not line.startswith("  "):
            yield head, frames
            head, frames = "", []
    if head:
        yield head, frames


def _plain(text: str) -> str:
    """Characters beyond ASCII come as escapes."""
    return _ESCAPED.sub(lambda match: _character(int(next(group for group in match.groups() if group), 16)), text)


def _character(number: int) -> str:
    return chr(number) if number < 0x110000 else "?"
