"""A file as the results have it, placed in the text as it is now: what diagnostics, lenses and hovers are made from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.protocol import Compile, Finding, Kernel, Outcome, Position, Range, Related, RelatedRole

from irscope_server.base.functions import Function, function_of, outline_of
from irscope_server.base.line_map import LineMap
from irscope_server.base.not_compiled import NotCompiled, why_not_compiled
from irscope_server.base.texts import FileKey, Texts, by_file, file_key
from irscope_server.running.results import Ended, Found, Results


@dataclass(frozen=True)
class PlacedFinding:
    """A finding in the text as it is now; lines are 0-based, columns indices into the line as a Python string."""

    finding: Finding
    run: str
    line: int
    column: int
    end_line: int
    end_column: int
    source: Sequence[str] | None = None
    """The file's lines as they were when it was found; None if they are not known."""
    stale: bool = False
    """A file of the run was edited since, so it may not be true any more."""
    outcome: Outcome | None = None
    """How the run ended that found it; None during the run."""
    related: tuple[Related, ...] = ()
    """The other places that have to do with it, where they are now."""
    texts: Mapping[FileKey, Sequence[str]] = field(default_factory=dict)
    """Lines of all files that the run names, as they were when it was found."""
    may_differ: tuple[str, ...] = ()
    """Why a full run may find other things."""


@dataclass(frozen=True)
class PlacedFunction:
    """A function that was compiled, in the text as it is now (0-based lines)."""

    title: str
    first_line: int
    """The line of its first decorator."""
    line: int
    """The line of its ``def``; the same if there is no function (module level, code made by `exec`)."""
    name: str
    ended: Ended
    compiles: tuple[Compile, ...]
    kernels: tuple[Kernel, ...]
    """The kernels of a deep run of the text as it is now."""
    stale: bool = False
    """A file of the run was edited since."""
    before: tuple[Compile, ...] | None = None
    """Its compiles in the run before; None if that is not known or it was not compiled then."""
    ended_before: Ended | None = None
    elsewhere: bool = False
    """Its compiles are of other files: the code that this script handed to ``torch.compile``."""
    not_compiled: NotCompiled | None = None
    """Why it runs as plain Python; None if it was compiled."""


class Views:
    """Places results in current texts; remembers what it placed until a text or a result changes."""

    def __init__(self, results: Results, texts: Texts) -> None:
        self._results = results
        self._texts = texts
        self._findings: dict[FileKey, tuple[_Version, Sequence[str], tuple[PlacedFinding, ...]]] = {}
        self._functions: dict[FileKey, tuple[_Version, Sequence[str], tuple[PlacedFunction, ...]]] = {}
        self._maps: list[tuple[Sequence[str], Sequence[str], LineMap]] = []

    def findings(self, key: FileKey) -> tuple[PlacedFinding, ...]:
        """The findings in a file, one per cause, moved along with the edits, without those whose text was edited."""
        lines = self._texts.lines(key)
        kept = self._findings.get(key)
        if kept is None or kept[0] != self._version() or kept[1] is not lines:
            kept = (self._version(), lines, self._place_findings(key, lines))
            self._findings[key] = kept
        return kept[2]

    def causes(self, key: FileKey) -> list[PlacedFinding]:
        """The findings in a file without those that another finding mentions."""
        return [placed for placed in self.findings(key) if not self._is_mentioned(placed.finding)]

    def triggered_at(self, key: FileKey) -> Iterator[tuple[PlacedFinding, Range]]:
        """The recompilations that calls in a file triggered, wherever they are, with the calls as the text is now."""
        for file in sorted(self._results.files()):
            for placed in self.causes(file):
                for related in by_file(placed.related).get(key, ()):
                    if related.role is RelatedRole.TRIGGER:
                        yield placed, related.range

    def _is_mentioned(self, finding: Finding) -> bool:
        follows = finding.follows
        return follows is not None and any(
            other.finding.range == follows.range for other in self.findings(file_key(follows.file))
        )

    def functions(self, key: FileKey) -> tuple[PlacedFunction, ...]:
        """The functions of a file that the newest run compiled, from top to bottom."""
        lines = self._texts.lines(key)
        kept = self._functions.get(key)
        if kept is None or kept[0] != self._version() or kept[1] is not lines:
            kept = (self._version(), lines, self._place_functions(key, lines))
            self._functions[key] = kept
        return kept[2]

    def _version(self) -> _Version:
        return self._results.revision, self._texts.revision

    def line_map(self, old: Sequence[str] | None, new: Sequence[str]) -> LineMap:
        """The map between two texts; the last few are kept."""
        old = new if old is None else old
        for known_old, known_new, line_map in self._maps:
            if known_old is old and known_new is new:
                return line_map
        line_map = LineMap(old, new)
        self._maps = [(old, new, line_map), *self._maps[:15]]
        return line_map

    def _place_findings(self, key: FileKey, lines: Sequence[str]) -> tuple[PlacedFinding, ...]:
        placed: dict[tuple[object, ...], PlacedFinding] = {}
        for found in self._results.findings_in(key):
            if (moved := self._place(found, lines)) is not None:
                cause = (
                    found.finding.kind,
                    found.finding.code,
                    moved.line,
                    moved.column,
                    moved.end_line,
                    moved.end_column,
                )
                placed.setdefault(cause, moved)
        return tuple(sorted(placed.values(), key=lambda moved: (moved.line, moved.column)))

    def _place(self, found: Found, lines: Sequence[str]) -> PlacedFinding | None:
        ran = found.texts.get(found.key)  # not known: taken to be as now
        where = _moved(found.finding.range, ran, lines, self.line_map(ran, lines))
        if where is None:
            is_beyond = ran is None or found.finding.range.start.line > len(ran)
            if not is_beyond or not lines:
                return None
            last = len(lines) - 1  # a place that is not in the text: show it at the end rather than not at all
            where = (last, 0, last, len(lines[last]))
        stale = self._texts.are_edited(found.texts)
        related = tuple(self._place_related(related, found) for related in found.finding.related)
        placed = PlacedFinding(found.finding, found.run, *where, ran, stale, found.outcome, related, found.texts)
        return dataclasses.replace(placed, may_differ=found.may_differ)

    def _place_related(self, related: Related, found: Found) -> Related:
        """A related place in the text as it is now; where its own text was edited, the line is near."""
        ran = found.texts.get(file_key(related.file))
        if ran is None:
            return related
        now = self._texts.lines(related.file)
        line_map = self.line_map(ran, now)
        moved = _moved(related.range, ran, now, line_map)
        if moved is None:
            line = line_map.near(related.range.start.line - 1)
            moved = (line, 0, line, 0)
        line, column, end_line, end_column = moved
        where = Range(Position(line + 1, column), Position(end_line + 1, end_column))
        return dataclasses.replace(related, range=where)

    def _place_functions(self, key: FileKey, lines: Sequence[str]) -> tuple[PlacedFunction, ...]:
        for ended in self._results.runs_touching(key):
            placed = self._functions_of(ended, key, lines)
            if placed:
                return placed
        return ()

    def _functions_of(self, ended: Ended, key: FileKey, lines: Sequence[str]) -> tuple[PlacedFunction, ...]:
        old = ended.texts.get(key)
        line_map = self.line_map(old, lines)
        here, elsewhere = _group(ended, key, old if old is not None else lines)
        deep = self._current_deep(ended, key, lines)
        stale = self._texts.are_edited(ended.texts)
        deep_here, deep_elsewhere = ({}, ()) if deep is None else _group(deep, key, lines)
        previous = self._results.previous(ended.key)
        ran_before = previous.texts.get(key, lines) if previous else ()
        groups_before = _group(previous, key, ran_before)[0] if previous else {}
        compiles_before = {name: compiles for (name, _), (_, compiles) in groups_before.items()}
        placed = []
        for (name, line), (function, compiles) in here.items():
            kernels: tuple[Kernel, ...] = ()
            if deep is not None:
                kernels = _kernels(deep, _matching(deep_here, function, name, line, line_map))
            first = function.first_line if function else line
            placed.append(
                PlacedFunction(
                    function.title if function else name,
                    line_map.near(first - 1),
                    line_map.near((function.line if function else line) - 1),
                    function.name if function else "",
                    ended,
                    compiles,
                    kernels,
                    stale,
                    compiles_before.get(name),
                    previous,
                    not_compiled=self._why_not_compiled(ended, compiles),
                )
            )
        if ended.script_key == key:
            of_deep = _by_compile_call(deep_elsewhere, key, lines)
            for ran, compiles in _by_compile_call(elsewhere, key, old if old is not None else lines).items():
                line = line_map.near(ran - 1)
                kernels = _kernels(deep, of_deep.get(line + 1, ())) if deep is not None else ()
                programs = dict.fromkeys(compile.program for compile in compiles if compile.program)
                title = ", ".join(programs) or "compiled in other files"
                placed.append(PlacedFunction(title, line, line, "", ended, compiles, kernels, stale, elsewhere=True))
        return tuple(sorted(placed, key=lambda function: (function.first_line, function.elsewhere)))

    def _why_not_compiled(self, ended: Ended, compiles: Sequence[Compile]) -> NotCompiled | None:
        """Like `why_not_compiled`, with the break where it is now; findings that the user hides count, too."""

        def ran(file: str) -> Sequence[str]:
            return ended.texts.get(file_key(file)) or self._texts.lines(file)

        def line_now(file: str, line: int) -> int:
            return self.line_map(ran(file), self._texts.lines(file)).near(line)

        return why_not_compiled(ended.full or ended.report, compiles, ran, line_now)

    def _current_deep(self, ended: Ended, key: FileKey, lines: Sequence[str]) -> Ended | None:
        """The newest deep run of a script, if the file's text is still what it ran with."""
        deep = self._results.deep(ended.key)
        if deep is None:
            return None
        for file in (key, ended.script_key):
            ran, now = deep.texts.get(file), self._texts.lines(file)
            if ran is not None and ran is not now and list(ran) != list(now):
                return None
        return deep


_Version = tuple[int, int]
"""Revisions of the results and of the texts."""


def _moved(
    place: Range, old: Sequence[str] | None, new: Sequence[str], line_map: LineMap
) -> tuple[int, int, int, int] | None:
    """A range (1-based lines) in the text as it is now (0-based); None if its text was edited or deleted."""
    line, column, end_line, end_column = place.start.line - 1, place.start.column, place.end.line - 1, place.end.column
    first, last = line_map.exact(line), line_map.exact(end_line)
    if first is not None and last is not None:
        return first, column, max(first, last), end_column
    if old is None or not (0 <= line < len(old) and 0 <= end_line < len(old)):
        return None
    if line == end_line:
        moved = line_map.span(line, column, end_column)
        return None if moved is None else (moved[0], moved[1], moved[0], moved[1] + end_column - column)
    head = line_map.span(line, column, len(old[line]))
    tail = line_map.span(end_line, 0, end_column)
    if head is None or tail is None or tail[0] < head[0]:
        return None
    return head[0], head[1], tail[0], tail[1] + end_column


_Groups = dict[tuple[str, int], tuple[Function | None, tuple[Compile, ...]]]


def _group(ended: Ended, key: FileKey, lines: Sequence[str]) -> tuple[_Groups, tuple[Compile, ...]]:
    """A run's compiles by the function of the file that they belong to, and those of other files."""
    outline = outline_of("\n".join(lines))
    groups: dict[tuple[str, int], tuple[Function | None, list[Compile]]] = {}
    here = ended.compiles.get(key, ())
    for compile in here:
        function = function_of(outline, compile.function, compile.line) if outline else None
        name = (function.title, function.first_line) if function else (compile.function, compile.line)
        groups.setdefault(name, (function, []))[1].append(compile)
    ids = {compile.id for compile in here}
    elsewhere = tuple(compile for compile in ended.report.compiles if compile.id not in ids)
    return {name: (function, tuple(compiles)) for name, (function, compiles) in groups.items()}, elsewhere


def _by_compile_call(compiles: Sequence[Compile], key: FileKey, lines: Sequence[str]) -> dict[int, tuple[Compile, ...]]:
    """Compiles by the line (1-based) of a script that called ``torch.compile`` for them; the first such line where none
    is known to be it."""
    outline = outline_of("\n".join(lines))
    calls = outline.compile_calls if outline else ()
    groups: dict[int, list[Compile]] = {}
    for compile in compiles:
        callers = {origin.line for origin in compile.callers if file_key(origin.file) == key}
        line = next((line for line in calls if line in callers), calls[0] if calls else 1)
        groups.setdefault(line, []).append(compile)
    return {line: tuple(mine) for line, mine in groups.items()}


def _matching(
    groups: _Groups, function: Function | None, name: str, line: int, line_map: LineMap
) -> tuple[Compile, ...]:
    """The compiles that a deep run of the current text has for a function that another run compiled."""
    wanted = (name, line_map.near((function.first_line if function else line) - 1) + 1)
    return groups[wanted][1] if wanted in groups else ()


def _kernels(deep: Ended, compiles: tuple[Compile, ...]) -> tuple[Kernel, ...]:
    ids = {compile.id for compile in compiles}
    return tuple(kernel for kernel in deep.report.kernels if kernel.compile in ids)
