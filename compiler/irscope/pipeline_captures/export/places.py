"""The lines of a node that are shown: the user's, or those of a package if none is the user's."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.protocol import Origin
from irscope.usercode.user_files import is_package_file, is_user_file


def user_lines(frames: Iterable[tuple[str, int, str]]) -> tuple[Origin, ...]:
    """The lines of a stack, innermost first; it is given outermost first, as file, line and function."""
    lines = dict.fromkeys(Origin(file, line) for file, line, _ in reversed(tuple(frames)))
    for belongs in (is_user_file, is_package_file):
        if found := tuple(line for line in lines if belongs(line.file)):
            return found
    return ()
