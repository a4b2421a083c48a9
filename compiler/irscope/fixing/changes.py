"""What a rule does to a text, as data: which part of its syntax, and what takes its place."""

from __future__ import annotations

import enum

from irscope.protocol import Range
from irscope.vocabulary.records import dataclass


class ChangeKind(str, enum.Enum):
    """What a change does to the syntax."""

    EXPRESSION = "expression"
    """The code takes the place of the expression, or of the expression statement, in the range."""
    STATEMENTS = "statements"
    """The code takes the place of the statements in the range; it is not indented."""
    LINES = "lines"
    """The code, with the blank lines around it, goes between statements, where the range is (empty)."""
    REMOVAL = "removal"
    """The decorator or statement in the range goes."""
    ARGUMENT = "argument"
    """The code, ``name=value``, is passed by the call in the range; a decorator that is not a call becomes one."""


@dataclass(frozen=True)
class SyntaxChange:
    """What is done to the syntax at a range; `edits.edits_of` makes edits of it."""

    kind: ChangeKind
    range: Range
    code: str = ""
