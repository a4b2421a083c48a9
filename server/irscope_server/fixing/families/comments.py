"""Changes that a finding carries itself, with the comments that they would lose.

Those are made where LibCST cannot be asked for: in the run's process, which has the standard library and torch alone.
They replace whole expressions and statements.  A comment in there goes above the statement here.
"""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from collections.abc import Iterator

import libcst as cst
from irscope.driver.fixing.texts import applied, may_lose_comments
from irscope.protocol import Edit, Finding, Fix, Position, Range

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    """Under the title of the finding's own change, so that it takes the place of that one."""
    for fix in finding.fixes:
        kept = with_comments(source.text, fix) if fix.file in ("", finding.file) else None
        if kept is not None:
            yield Proposal(fix.title, fix.caveat, kept)


def with_comments(before: str, fix: Fix) -> str | None:
    """A text with a change that keeps the comments; None if the change loses none, or is of another text."""
    edits = sorted(fix.edits, key=lambda edit: edit.range)
    if not may_lose_comments(before.split("\n"), edits):
        return None
    try:
        changed = text = applied(before, edits)
        for number in reversed(range(len(edits))):
            text = _with_lost(before, text, edits, number)
    except (ValueError, tokenize.TokenError):
        return None  # or it is not Python any more
    return text if text != changed else None


def _with_lost(before: str, text: str, edits: list[Edit], number: int) -> str:
    """A changed text with the comments that one of the edits takes away, above the statement that it changes."""
    edit = edits[number]
    lost = Counter(_comments(before)) - Counter(_comments(applied(before, [edit])))
    if not lost:
        return text
    made = Source(text)
    line = edit.range.start.line + sum(_more_lines(one) for one in edits[:number])
    at = Position(line, edit.range.start.column)
    node = made.at(Range(at, at))
    statement = made.statement(node) if node is not None else None
    if statement is None:
        return text
    above = [cst.EmptyLine(comment=cst.Comment(one)) for one in lost.elements()]
    leading = [*getattr(statement, "leading_lines", ()), *above]
    return made.changed({statement: statement.with_changes(leading_lines=leading)})


def _more_lines(edit: Edit) -> int:
    return edit.text.count("\n") - (edit.range.end.line - edit.range.start.line)


def _comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


FAMILY = Family("comments", ("graph-break", "recompilation"), _propose)
