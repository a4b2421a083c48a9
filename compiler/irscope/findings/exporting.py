"""The finding of a program that ``torch.export`` cannot trace, in the script's own call or in a pipeline's."""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING

from irscope.events.break_message import DATA_DEPENDENT_GUARD, BreakMessage, parse_break_messages
from irscope.events.stack import FramePlace, innermost_user, places_of_error, related_to
from irscope.findings.kinds.graph_break import fixes_of, with_guard, words_at
from irscope.findings.known_issues import issue_of
from irscope.pipelines.export.kinds import EXPORT_ERROR
from irscope.protocol import Finding, Range
from irscope.usercode.source import node_at_range, range_of_line

if TYPE_CHECKING:
    from irscope.fixing.advice import Words


def finding_of(
    error: BaseException, why: str, file: str, line: int, compiles: tuple[str, ...] = (), what: str = "torch.export"
) -> Finding:
    """The finding at the user's line that failed.

    Args:
        why: What the failure leads to.
        file, line: The place if the error does not tell one.
        what: What failed.
    """
    places = places_of_error(error)
    at = innermost_user(places)
    messages = with_guard(parse_break_messages(str(error)), error)
    words = _words(places, at, messages, str(error)) if messages and at is not None else None
    where: Range = range_of_line(file, line) if at is None else places[at].range
    return Finding(
        kind=EXPORT_ERROR.id,
        code=(messages[0].code if messages else "") or type(error).__name__,
        severity=EXPORT_ERROR.severity,
        message=f"{what} failed: {_reason(error, messages)}.",
        explanation=why,
        hints=words.hints if words is not None else (),
        link=messages[0].link if messages else known.link if (known := issue_of(error)) else None,
        file=file if at is None else places[at].file,
        range=where,
        count=1,
        compiles=compiles,
        related=() if at is None else related_to(places, at),
        fixes=fixes_of(words) if words is not None else (),
    )


def _words(places: list[FramePlace], at: int, messages: list[BreakMessage], text: str) -> Words:
    """The words of the same graph break, without what only helps there: an exported program is one graph, and numbers of
    tensors are symbols in it."""
    from irscope.fixing.advice.guards import APART  # here: with it come the rules for all breaks

    words = words_at(places, at, messages, text, False)
    if messages[0].code != DATA_DEPENDENT_GUARD:
        return words
    options = [option for option in words.options if option != APART and not option.anywhere]
    if not options and isinstance(node_at_range(places[at].file, places[at].range), ast.Subscript):
        scalar = words_at(places, at, [dataclasses.replace(messages[0], code=_SCALAR)], text, False)
        options = [option for option in scalar.options if not option.anywhere]
    return dataclasses.replace(words, hints=(*(option.hint for option in options), *_HINTS), options=tuple(options))


_SCALAR = "GB0124"
"""What Dynamo says where Python needs a value, as an index of a list does."""
_HINTS = (
    "Keep the choice in the graph: `torch.cond(...)`, or `torch.where(...)` where both sides are cheap.",
    "If the answer is the same in each call, state it before this line: `torch._check(...)`.",
    "`torch.export.draft_export` in place of `torch.export.export` goes on, and lists each such line.",
)


def _reason(error: BaseException, messages: list[BreakMessage]) -> str:
    if messages and messages[0].code == DATA_DEPENDENT_GUARD:
        return f"Python needs the value of {_readable(messages[0].context)}, which depends on a tensor's data"
    if messages:
        return messages[0].type.rstrip(".")
    return f"{type(error).__name__}: {first_line(error).rstrip('.')}"


def _readable(expression: str) -> str:
    """``TruncToInt(zuf0)`` is not Python: ``int(zuf0)``."""
    return expression.replace("TruncToInt(", "int(")


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says something."""
    return next((line.strip() for line in str(error).split("\n") if line.strip()), "no reason given")
