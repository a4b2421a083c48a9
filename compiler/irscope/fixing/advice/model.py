"""What goes into the words of a graph break, and what comes out."""

from __future__ import annotations

import ast
import textwrap
import types
from typing import TYPE_CHECKING

from irscope.events.break_message import BreakMessage
from irscope.protocol import Edit, FixMethod, Range
from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.events.stack import FramePlace


@dataclass(frozen=True)
class BreakContext:
    """A graph break as PyTorch tells it, at the place where irscope found it.

    Args:
        messages: PyTorch's messages, the cause first; the others say what the cause led to.
        file, function, range: The innermost user frame and the expression it was at.
        node: The syntax node at the range, if the file has one there.
        payload: The whole text of the trace record, with PyTorch's stack source attribution.
        skipped: Whether the whole function runs as plain Python.
        beneath: The frames below the place, down to what broke, outermost first: all are of libraries.
        traced: Whether the place is in the code that is compiled; else it is a call of compiled code that is in a
            library.
        inlined: Whether what broke is in a function that is called from the one that is compiled.
        resumed: Whether an earlier break has cut the function, so that this graph begins in the middle of it.
        whole: What runs as plain Python if it is skipped.
        refused: The function that Dynamo did not go into, below its decorators, if that is the break and known.
    """

    messages: tuple[BreakMessage, ...]
    file: str
    function: str
    range: Range
    node: ast.expr | ast.stmt | None
    payload: str
    skipped: bool
    beneath: tuple[FramePlace, ...] = ()
    traced: bool = True
    inlined: bool = False
    resumed: bool = False
    whole: str = "the whole function"
    refused: types.CodeType | None = None


@dataclass(frozen=True)
class Option:
    """One way to avoid a graph break.

    Args:
        do: What to do, as a phrase without its full stop: ``Keep the value as a tensor``.
        code: The code that does it, made from the line at hand; may be empty.
        caveat: What it changes, or when it does not apply; whole sentences.
        edits: What makes the code of the line at hand, where applying it is safe to do for the user; none if the code
            is an example for another place (the caller, another file) or holds something only the user knows.
        anywhere: Whether it helps wherever the cause lies, also inside of a library: a setting that does not name
            anything in the code.
        method: What it does, where a family of fixes does the same.
    """

    do: str
    code: str = ""
    caveat: str = ""
    edits: tuple[Edit, ...] = ()
    anywhere: bool = False
    method: FixMethod | None = None

    @property
    def hint(self) -> str:
        """The option as text: one line where the code is one, else the code as an indented block."""
        if "\n" in self.code or len(self.code) > 100:
            return "\n".join(filter(None, (f"{self.do}:", textwrap.indent(self.code, "    "), self.caveat)))
        first = f"{self.do}: `{self.code}`." if self.code else f"{self.do}."
        return " ".join(filter(None, (first, self.caveat)))


@dataclass(frozen=True)
class Advice:
    """What a rule says of one break.

    Args:
        what: What happened, in the user's words, as a sentence without its full stop.
        why: Why it cannot be traced; whole sentences.
        options: What to do, in order of preference.
        value: The expression whose origin explains the break, if there is one.
    """

    what: str
    why: str
    options: tuple[Option, ...] = ()
    value: ast.expr | None = None


@dataclass(frozen=True)
class Words:
    """The words of one graph break; the hints are the options as text."""

    message: str
    explanation: str
    hints: tuple[str, ...]
    options: tuple[Option, ...] = ()
