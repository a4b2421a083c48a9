"""Which lines of the documents of a run belong together: the colours of lines, and what the cursor lights up."""

from __future__ import annotations

import asyncio
import functools
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from irscope.protocol import Origin, OutcomeKind, Report, StageRef
from irscope.protocol.symbols import SymbolFacts, symbols_in
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store

from irscope_server.base.context import ReadContext
from irscope_server.base.line_map import LineMap
from irscope_server.base.main_first import is_ranked, weight
from irscope_server.base.messages import Encoded
from irscope_server.base.params import CounterpartsParams, LinkedLinesParams
from irscope_server.base.results import CounterpartsResult, LineKey, LinesOf, LinkedLinesResult
from irscope_server.base.stage_uris import SCHEME, NoDocument, parts_of, uri_of_stage
from irscope_server.base.symbols import symbols_of_compile
from irscope_server.base.texts import FileKey, file_key, keyed, split_lines
from irscope_server.base.wire import to_wire

T = TypeVar("T")

_MOST_RUNS = 4
_MOST_TEXTS = 8
"""The most stages of a run whose lines are kept: those that are open beside each other."""


class RunReader:
    """One run, with what was found out about its lines.  Belongs to the reader's thread."""

    def __init__(self, store: Store, report: Report) -> None:
        self.store, self.report = store, report
        self.linked = LinkedLines(store, report)
        self.stages: dict[str, StageRef] = {stage.id: stage for compile in report.compiles for stage in compile.stages}
        self._texts: dict[str, Sequence[str]] = {}

    def symbols_in(self, stage: str, text: str) -> list[SymbolFacts]:
        """What the symbolic sizes in a text of a stage stand for, as far as its compile tells."""
        names = symbols_in(text)
        compile = next((one for one in self.report.compiles if any(each.id == stage for each in one.stages)), None)
        known = symbols_of_compile(self.store, self.report.run, compile) if compile and names else {}
        return [known[name] for name in names if name in known]

    def stage_of(self, candidates: Sequence[str]) -> StageRef:
        """Raises NoDocument."""
        stage = next((self.stages[name] for name in candidates if name in self.stages), None)
        if stage is None:
            raise NoDocument(f"Run {self.report.run} has no stage {candidates[0]}.")
        return stage

    def main_first(self, stage: str, lines: Sequence[int]) -> tuple[int, ...]:
        """Lines (1-based) of a stage, with the one that computes most before the others."""
        ref = self.stages.get(stage)
        if ref is None or len(lines) < 2 or not is_ranked(ref.name):
            return tuple(lines)
        rows = self._rows(stage)
        items = {item.element.line: item for item in self.linked.thread.items(stage).items}
        computing = [line for line in lines if line in items and line <= len(rows)]
        main = min(computing, key=lambda line: weight(ref.name, items[line], rows[line - 1]), default=lines[0])
        return (main, *(line for line in lines if line != main))

    def _rows(self, stage: str) -> Sequence[str]:
        if stage not in self._texts:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.pop(next(iter(self._texts)))
            self._texts[stage] = split_lines(self.store.stage_text(self.report.run, stage))
        return self._texts[stage]

    def code_at(self, origin: Origin) -> str:
        """A line of the user's files as the run had it; empty if it is not known."""
        _, lines = self.lines_as_run(origin.file) or ("", ())
        return lines[origin.line - 1].strip() if 0 < origin.line <= len(lines) else ""

    def lines_as_run(self, path: str) -> tuple[str, Sequence[str]] | None:
        """A file of the user as the run names it, and its lines as they were."""
        return self._files.get(file_key(path))

    @functools.cached_property
    def _files(self) -> Mapping[FileKey, tuple[str, Sequence[str]]]:
        kept = {name: (name, split_lines(text)) for name, text in self.store.sources(self.report.run).items()}
        named: dict[str, tuple[str, Sequence[str]]] = {origin.file: (origin.file, ()) for origin in self.linked.palette}
        return {**keyed(named), **keyed(kept)}


class StageReader:
    """Reads stages in its own thread, so that a big run does not block other readers of the store.

    Args:
        path: Gives the store's file.
    """

    def __init__(self, path: Callable[[], str]) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="irscope-stages")
        self._store: tuple[str, Store] | None = None
        self._runs: OrderedDict[str, RunReader] = OrderedDict()

    async def ask(self, run: str, question: Callable[[RunReader], T]) -> T:
        """Asks about a run.  Raises what the question raises, LookupError where there is no such run, StoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, run, question)

    def _answer(self, run: str, question: Callable[[RunReader], T]) -> T:
        path = self._path()
        if self._store is None or self._store[0] != path:
            self._runs.clear()
            self._store = (path, Store(path))
        kept = self._runs.get(run)
        if kept is not None:
            try:
                self._runs.move_to_end(run)
                return question(kept)
            except LookupError:
                del self._runs[run]  # a stage may have been made since
        reader = RunReader(self._store[1], self._store[1].report(run).whole)
        if reader.report.outcome.kind is not OutcomeKind.CANCELLED:  # which is also what a run that goes on looks like
            self._runs[run] = reader
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
        return question(reader)

    def close(self) -> None:
        """Stop the thread.  Questions that have not begun are cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class LinkContext(ReadContext, Protocol):
    """The run store, and the reader of its stages."""

    @property
    def stages(self) -> StageReader:
        """The reader of stages."""


async def linked_lines(context: LinkContext, params: LinkedLinesParams) -> Encoded:
    """Raises LookupError for an unknown document or run."""
    uri, path = params.uri, context.path_of(params.uri)
    if path is not None:
        now = list(context.texts.lines(path))
        numbers = await _numbers(context, params.run, params.beside)
        return await context.stages.ask(params.run, lambda run: _lines_of_source(run, uri, path, now, numbers))
    name, candidates = parts_of(uri)
    numbers = await _numbers(context, name, params.beside)

    def read(run: RunReader) -> Encoded:
        lines = run.linked.keys(run.stage_of(candidates).id)
        origins = {
            origin: number for number, origin in enumerate(dict.fromkeys(o for keys in lines.values() for o in keys))
        }
        keys = tuple(
            LineKey(context.uri_of(origin.file), origin.line - 1, numbers.get(origin, 0)) for origin in origins
        )
        rows = tuple((line - 1, *(origins[origin] for origin in own)) for line, own in lines.items())
        return _encoded(LinkedLinesResult(name, keys, rows))

    return await context.stages.ask(name, read)


async def _numbers(context: LinkContext, run: str, beside: Sequence[str]) -> Mapping[Origin, int]:
    """The number of each key: that of the run, or one for several runs, so that a line has the same colour in all."""
    if not beside:
        return await context.stages.ask(run, lambda reader: reader.linked.palette)
    found: set[Origin] = set()
    for name in dict.fromkeys((run, *beside[:_MOST_RUNS])):
        try:
            found.update(await context.stages.ask(name, lambda reader: reader.linked.palette))
        except LookupError:
            if name == run:
                raise  # the others may have been deleted
    return {origin: number for number, origin in enumerate(sorted(found))}


def _lines_of_source(run: RunReader, uri: str, path: str, now: Sequence[str], numbers: Mapping[Origin, int]) -> Encoded:
    found = run.lines_as_run(path)
    keys: list[LineKey] = []
    lines: list[tuple[int, ...]] = []
    if found is not None:
        file, then = found
        placed = LineMap(then or now, now)
        for origin in run.linked.palette:
            if origin.file == file and (line := placed.exact(origin.line - 1)) is not None:
                lines.append((line, len(keys)))
                keys.append(LineKey(uri, line, numbers.get(origin, 0)))
        callers = (placed.exact(line - 1) for line in run.linked.callers(file))
        lines.extend((line,) for line in callers if line is not None)
    return _encoded(LinkedLinesResult(run.report.run, tuple(keys), tuple(sorted(lines))))


def _encoded(result: LinkedLinesResult) -> Encoded:
    """As JSON; thousands of rows are written as they are."""
    return Encoded(json.dumps({"run": result.run, "keys": to_wire(result.keys), "lines": result.lines}))


async def counterparts(context: LinkContext, params: CounterpartsParams) -> CounterpartsResult:
    """Raises LookupError for an unknown document or run."""
    stages: dict[str, str] = {}
    texts: dict[str, tuple[str, Sequence[str]]] = {}
    for uri in (params.uri, *params.among):
        if (path := context.path_of(uri)) is not None:
            texts[uri] = (path, list(context.texts.lines(path)))

    def read(run: RunReader) -> tuple[list[LinesOf], _Places]:
        for uri in (params.uri, *params.among):
            if uri.startswith(f"{SCHEME}:") and (parts := parts_of(uri))[0] == params.run:
                stages[run.stage_of(parts[1]).id] = uri
        start = next((stage for stage, uri in stages.items() if uri == params.uri), None)
        if params.uri in texts:
            origin = _origin(run, *texts[params.uri], params.line)
            found = {} if origin is None else run.linked.counterparts_of_source(origin.file, origin.line, stages)
            origins: tuple[Origin, ...] = ()
            sources: tuple[Origin, ...] = () if origin is None else (origin,)
        elif start is not None:
            found = run.linked.counterparts(start, params.line + 1, stages)
            sources = origins = run.linked.source_of(start, params.line + 1)
        else:
            return [], []
        places = [_lines_of(run, stage, stages[stage], lines) for stage, lines in found.items()]
        others = ((uri, _placed(run, path, now, origins)) for uri, (path, now) in texts.items() if uri != params.uri)
        places += [LinesOf(uri, lines) for uri, lines in others if lines]
        return places, _as_run(run, sources)

    places, sources = await context.stages.ask(params.run, read)
    return CounterpartsResult((*places, *await _in_other_runs(context, params, sources)))


_Places = list[tuple[Origin, Sequence[str]]]
"""Lines of the user's files, each with the text of its file as the run had it."""
_MOST_PLACES = 50


def _as_run(run: RunReader, sources: tuple[Origin, ...]) -> _Places:
    ran = {origin.file: (run.lines_as_run(origin.file) or ("", ()))[1] for origin in sources}
    return [(origin, ran[origin.file]) for origin in sources[:_MOST_PLACES]]


async def _in_other_runs(context: LinkContext, params: CounterpartsParams, sources: _Places) -> list[LinesOf]:
    """The lines of documents of other runs that came from the same lines of the user's files."""
    documents: dict[str, list[str]] = {}
    for uri in params.among:
        if uri.startswith(f"{SCHEME}:") and (name := parts_of(uri)[0]) != params.run:
            documents.setdefault(name, []).append(uri)

    def read(run: RunReader, uris: Sequence[str]) -> list[LinesOf]:
        stages = {run.stage_of(parts_of(uri)[1]).id: uri for uri in uris}
        found: dict[str, set[int]] = {}
        for origin, then in sources:
            known = run.lines_as_run(origin.file)
            line = None if known is None else LineMap(then or known[1], known[1] or then).exact(origin.line - 1)
            if known is not None and line is not None:
                for stage, lines in run.linked.counterparts_of_source(known[0], line + 1, stages).items():
                    found.setdefault(stage, set()).update(lines)
        return [_lines_of(run, stage, stages[stage], sorted(lines)) for stage, lines in found.items()]

    places: list[LinesOf] = []
    for name, uris in documents.items():
        try:
            places += await context.stages.ask(name, lambda run, uris=uris: read(run, uris))  # type: ignore[misc]
        except LookupError:
            continue  # the run was deleted meanwhile
    return places


def _lines_of(run: RunReader, stage: str, uri: str, lines: Sequence[int]) -> LinesOf:
    return LinesOf(uri, tuple(line - 1 for line in run.main_first(stage, lines)))


def _origin(run: RunReader, path: str, now: Sequence[str], line: int) -> Origin | None:
    """A line of a file as it is now (0-based) as the run had it."""
    found = run.lines_as_run(path)
    if found is None:
        return None
    file, then = found
    before = LineMap(now, then or now).exact(line)
    return None if before is None else Origin(file, before + 1)


def _placed(run: RunReader, path: str, now: Sequence[str], origins: Sequence[Origin]) -> tuple[int, ...]:
    """Lines (0-based) of a file as it is now that are among some places of a run."""
    found = run.lines_as_run(path)
    if found is None or not origins:
        return ()
    file, then = found
    placed = LineMap(then or now, now)
    lines = (placed.exact(origin.line - 1) for origin in origins if origin.file == file)
    return tuple(sorted({line for line in lines if line is not None}))


def document_uri(run: RunReader, stage: str) -> str:
    """The URI of a stage's document."""
    return uri_of_stage(run.report.run, stage, run.stages[stage].language)
