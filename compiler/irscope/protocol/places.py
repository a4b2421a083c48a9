"""Places in files.  Lines are 1-based, columns are 0-based indices into the line as a Python string, ends are exclusive."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, order=True)
class Position:
    """A place between two characters of a file."""

    line: int
    column: int


@dataclasses.dataclass(frozen=True, order=True)
class Range:
    """A range of a file; `end` is exclusive."""

    start: Position
    end: Position
