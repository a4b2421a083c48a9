"""What a script writes: the same lines in the same order, apart from what torch writes and from the ends of numbers."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[-+]?\d+\.\d+(?:e[-+]?\d+)?")
_OF_TORCH = re.compile(
    r"^(?:[VDIWEC]\d{4} .*|\S*(?:site|dist)-packages/\S*:\d+: \w*Warning: .*(?:\n {2}.*)?)\n?", re.MULTILINE
)
"""Its log, and warnings that torch and other libraries raise in their own name."""
_LINE = re.compile(r"(?<=\.py:)\d+(?=: \w*Warning:)")


def written(stdout: str, stderr: str) -> tuple[list[str], list[str]]:
    """The lines of both streams, as they are compared: a change moves the lines that warnings name."""
    return _lines(stdout), _lines(_LINE.sub("", _OF_TORCH.sub("", stderr)))


def _lines(text: str) -> list[str]:
    return [_NUMBER.sub(lambda number: f"{float(number[0]):.3g}", line) for line in text.splitlines()]
