"""Breakpoints within a line: the expressions of a line of the user's, and the nodes that are on one line of a stage.

An expression is known by where Dynamo walked over it: its instruction carries its range.  It is named by the column at
which it differs from the others of its line: the last name of a call (``sum`` in ``x.relu().sum()``), the operator of an
operation, the bracket of a subscript.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from irscope.protocol import Origin, Position, Range

from irscope_server.dap.base.sections import Section, real
from irscope_server.dap.engine.links import Links
from irscope_server.dap.engine.recording import PlaceInRun, Recording
from irscope_server.dap.trace.traces import Code, TraceSection

_DOES = ("CALL", "BINARY_", "COMPARE_OP", "CONTAINS_OP", "IS_OP", "UNARY_", "STORE_SUBSCR", "INPLACE_")
"""What instructions begin with that do something to values; everything else only fetches and stores them."""
_DEEPEST = 64


@dataclass(frozen=True)
class Expression:
    """An expression of a file; lines count from 1 and columns, in characters, from 0."""

    file: str
    at: Position
    range: Range


class Columns:
    """Answers for one run."""

    def __init__(self, recording: Recording, links: Links) -> None:
        self._recording, self._links = recording, links
        self._anchors: dict[str, dict[Range, Position]] = {}

    # --- lines of the user's ------------------------------------------------------------------------------------------

    def expressions(self, file: str, first: int, last: int) -> list[Expression]:
        """The expressions of some lines that Dynamo walked over, by line and column."""
        wanted = real(file)
        ranges = self._walked.get(wanted, {})
        anchors = self._anchors_of(wanted) if ranges else {}
        found = {Expression(wanted, anchors.get(each, each.start), each) for each in ranges}
        return sorted(
            (each for each in found if first <= each.at.line <= last), key=lambda each: (each.at.line, each.at.column)
        )

    def expression(self, file: str, line: int, column: int) -> Expression | None:
        """The one at a column, or the next before it; else the first of its line."""
        here = self.expressions(file, line, line)
        return next((each for each in reversed(here) if each.at.column <= column), here[0] if here else None)

    def marks(self, wanted: Expression, section: Section) -> Sequence[int]:
        """The spots of a stage that come from an expression."""
        if isinstance(section, TraceSection) and section.walk is not None:
            return self._steps(wanted, section)
        if section.is_source:
            return ()
        compile = next(
            number for number, each in enumerate(self._recording.tracks) if each.compile.id == section.compile.id
        )
        track = self._recording.tracks[compile]
        number, names = track.number_of(section.stage.id), self._nodes(wanted, compile)
        if number is None or not names:
            return ()
        spots = section.by_origin.get(Origin(wanted.file, wanted.range.start.line), ())
        spots = spots or section.by_origin.get(Origin(wanted.file, wanted.at.line), ())
        return [spot for spot in spots if self._comes_from(PlaceInRun(compile, number, spot), names)]

    def _nodes(self, wanted: Expression, compile: int) -> set[PlaceInRun]:
        """The nodes of the first graph that an expression made, and what it called made."""
        found: set[PlaceInRun] = set()
        for number, section, walk in self._recording.tracks[compile].traces():
            for step in self._steps(wanted, section):
                behind = walk.over(step)
                inside = range(step, behind if behind is not None else len(walk))
                found.update(self._links.nodes_of(PlaceInRun(compile, number, step), inside))
        return found

    def _comes_from(self, place: PlaceInRun, wanted: set[PlaceInRun]) -> bool:
        open_, seen = [place], {place}
        for _ in range(_DEEPEST):
            if wanted & set(open_):
                return True
            above = (parent for each in open_ for parent in self._links.parents(each))
            open_ = [each for each in dict.fromkeys(above) if each not in seen and each.section < place.section]
            seen.update(open_)
            if not open_:
                break
        return False

    def _steps(self, wanted: Expression, section: TraceSection) -> list[int]:
        at = self._walked.get(wanted.file, {}).get(wanted.range, ())
        return sorted(step for each in at for step in section.by_instruction.get(each, ()))

    @cached_property
    def _walked(self) -> dict[str, dict[Range, list[tuple[Code, int]]]]:
        """File → range of an expression → the instructions that do it."""
        found: dict[str, dict[Range, list[tuple[Code, int]]]] = {}
        for track in self._recording.tracks:
            for _, section, walk in track.traces():
                listings = {code: walk.listing(number) for number, code in enumerate(walk.codes())}
                for code, at in section.by_instruction:
                    each = listings[code][at]
                    if each.range is not None and each.operation.startswith(_DOES):
                        places = found.setdefault(real(code[0]), {}).setdefault(each.range, [])
                        if (code, at) not in places:
                            places.append((code, at))
        return found

    def _anchors_of(self, file: str) -> dict[Range, Position]:
        if file not in self._anchors:
            self._anchors[file] = dict(_anchors(self._recording.text_of(file)))
        return self._anchors[file]

    # --- lines of a stage ---------------------------------------------------------------------------------------------

    def spots(self, section: Section, line: int) -> list[tuple[int, int]]:
        """The spots on one line of a stage's text and their columns, if there are several: inputs of a graph."""
        if isinstance(section, TraceSection):
            return []
        text = section.lines[line - 1] if 1 <= line <= len(section.lines) else ""
        first = section.spot_at(line)
        found = []
        for spot in range(first, len(section.spots)):
            if section.document_line(spot) != line:
                break
            match = re.search(rf"(?<![\w.]){re.escape(section.spots[spot].name)}(?!\w)", text)
            if section.spots[spot].name and match is not None:
                found.append((match.start(), spot))
        return sorted(found)

    def spot(self, section: Section, line: int, column: int) -> tuple[int, int] | None:
        """The spot at a column of a line of a stage, or the next before it, with its own column."""
        found = self.spots(section, line)
        at = next((each for each in reversed(found) if each[0] <= column), found[0] if found else None)
        return (at[1], at[0]) if at is not None else None


def _anchors(text: str) -> Iterator[tuple[Range, Position]]:
    """The ranges of the expressions of a file, and where each differs from those that begin where it does."""
    lines = text.split("\n")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.end_lineno is None or node.end_col_offset is None:
            continue
        start, end = _at(lines, node.lineno, node.col_offset), _at(lines, node.end_lineno, node.end_col_offset)
        yield Range(start, end), _anchor(lines, node, start)


def _anchor(lines: Sequence[str], node: ast.expr, start: Position) -> Position:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        last = _end(lines, node.func)
        return Position(last.line, last.column - len(node.func.attr))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call | ast.Subscript):
        return _end(lines, node.func)
    before = {ast.BinOp: "left", ast.Compare: "left", ast.Subscript: "value"}.get(type(node))
    return _behind(lines, _end(lines, getattr(node, before))) if before is not None else start


def _end(lines: Sequence[str], node: ast.expr) -> Position:
    return _at(lines, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _behind(lines: Sequence[str], at: Position) -> Position:
    """The next sign that is neither a blank nor a bracket that closes, on the same line."""
    text = lines[at.line - 1][at.column :] if at.line <= len(lines) else ""
    skipped = len(text) - len(text.lstrip(" \t)"))
    return Position(at.line, at.column + skipped) if skipped < len(text) else at


def _at(lines: Sequence[str], line: int, offset: int) -> Position:
    """From a column in bytes, as the syntax tree has it."""
    text = lines[line - 1] if line <= len(lines) else ""
    return Position(line, len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")))
