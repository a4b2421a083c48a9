"""Numbers of the command line: each option says its bounds."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_MOST_DIGITS = 18
_MOST_SECONDS = 1e9
"""30 years: what the system's functions take that wait."""


def whole_number(of: str, least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number between two bounds; ``of``: a noun in the plural, for the message."""

    def read(text: str) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        if not is_number or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"Invalid number of {of}: {text[:40]!r} ({least} to {most})")
        return int(text)

    return read


def seconds(text: str) -> float:
    """A time that is more than 0; one that is longer than anybody waits becomes the longest."""
    if (value := seconds_or_zero(text)) == 0:
        raise argparse.ArgumentTypeError("it has to be more than 0 seconds")
    return value


def seconds_or_zero(text: str) -> float:
    """Like `seconds`; 0 if there is no time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # so is NaN
        raise argparse.ArgumentTypeError(f"Invalid number of seconds: {text[:40]!r}")
    return min(value, _MOST_SECONDS)
