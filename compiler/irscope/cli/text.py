"""How things look on a terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

from irscope.system.streams import shown
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_COLOUR = re.compile(r"\033\[[\d;]*m")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


_NARROWEST = 40


class Paint:
    """What a stream can show: its characters and how many columns.  Colours, if it is a terminal, unless
    ``NO_COLOR`` is set; or where ``FORCE_COLOR`` is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        forced = bool(os.environ.get("FORCE_COLOR"))
        self.on = forced or (stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")

    def __call__(self, text: str, *styles: str) -> str:
        """The text in these styles; unchanged where colours are off."""
        if not self.on or not styles or not text:
            return text
        return f"\033[{';'.join(_CODES[style] for style in styles)}m{text}\033[0m"

    def shown(self, text: str) -> str:
        """The text with stand-ins for the characters that the stream lacks; what is aligned must be so first."""
        return shown(text, self._stream)

    @property
    def columns(self) -> int | None:
        """Columns for a table: those of the terminal, or of ``COLUMNS``; None into a file or a pipe, which lose nothing."""
        if not self._stream.isatty() and not (os.environ.get("COLUMNS") or "").isdecimal():
            return None
        return max(_NARROWEST, shutil.get_terminal_size().columns)


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters two, combining ones and colours none."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if text.isascii():
        return len(text)
    # Tables have lines by the ten thousand, of which most letters are plain.
    return len(text) + sum(
        -1 if unicodedata.combining(c) else unicodedata.east_asian_width(c) in "WF" for c in _NOT_ASCII.findall(text)
    )


def terminal_width() -> int:
    """Columns to write in: those of the terminal, at least 60 and at most 140."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def short_path(path: str) -> str:
    """A path to print, relative to the working folder where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive, or a null byte
        relative = path
    return printable(relative if len(relative) < len(path) else path)


def path_in_package(path: str) -> str:
    """The path of a library's file from its package on; any other as it is."""
    parts = path.replace("\\", "/").split("/")
    inside = [at for at, part in enumerate(parts) if part in ("site-packages", "dist-packages")]
    return "/".join(parts[inside[-1] + 1 :]) if inside else path


def print_json(value: object) -> None:
    """Plain values as JSON: indented, unless it is so long that indenting it takes a second."""
    text = json.dumps(value)
    print(text if len(text) > _LONG_JSON else json.dumps(value, indent=1))


_LONG_JSON = 200_000


def left_out(number: int, what: str) -> None:
    """Says beside a JSON document, which has room for no remark, that it has not every row."""
    if number:
        print(f"irscope: {count(number, what)} left out; --all gives every one", file=sys.stderr)


_STEERS = re.compile(r"\x1b(?!\[[\d;]*m)")
"""What begins a sequence that a terminal obeys, but for colours."""


def to_stdout(lines: Sequence[str]) -> None:
    """Write the lines, each with a line end, and flush; names of a store from elsewhere do not steer the terminal."""
    sys.stdout.write(_STEERS.sub("�", "\n".join(lines) + "\n" if lines else ""))
    sys.stdout.flush()
