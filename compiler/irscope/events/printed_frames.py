"""Frames as Python and PyTorch print them in a text: the file, the line, and which part of it carets point at."""

from __future__ import annotations

import re

from irscope.protocol import Position, Range
from irscope.usercode.source import line_text, range_of_focus

FRAME = re.compile(
    r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n(?P<code>.*)(?:\n(?P<carets>[ ]*[~^]+)[ ]*$)?',
    re.MULTILINE,
)


def range_of(match: re.Match[str]) -> Range:
    """Where a `FRAME` is: at what its carets point to, if it has some."""
    file, line, carets = match["file"], int(match["line"]), match["carets"]
    if not carets:
        return range_of_focus(file, line)
    indent = len(match["code"]) - len(match["code"].lstrip())
    text = line_text(file, line)
    start = len(text) - len(text.lstrip()) + len(carets) - len(carets.lstrip()) - indent
    return Range(Position(line, start), Position(line, start + len(carets.strip())))
