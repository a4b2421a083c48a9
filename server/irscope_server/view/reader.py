"""Answers the reading requests of docs/PROTOCOL.md without a language client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from irscope.protocol import Lane, Report
from irscope.store.store import Store, StoreError
from pygls.uris import from_fs_path, to_fs_path, uri_scheme

from irscope_server.app import features
from irscope_server.base import wire
from irscope_server.base.archive import Archive
from irscope_server.base.messages import Encoded, RequestFailed
from irscope_server.base.params import PARAMS, StageParams, UriParams
from irscope_server.base.results import DocumentResult, StageOfCompile
from irscope_server.base.texts import Texts, file_key, keyed, text_on_disk
from irscope_server.graph.requests import GraphCache
from irscope_server.panels.findings import FindingsParams, findings
from irscope_server.panels.requests import REQUESTS
from irscope_server.running.entries import BadEntry, parse_entry
from irscope_server.stages.documents import document
from irscope_server.stages.linked import StageReader
from irscope_server.stages.on_demand import cannot, make_stage
from irscope_server.stages.tree import stages_of
from irscope_server.view.view_options import Wishes

T = TypeVar("T")

READING = (
    "irscope/runs",
    "irscope/report",
    "irscope/graph",
    "irscope/graphKernels",
    "irscope/document",
    "irscope/linkedLines",
    "irscope/counterparts",
    *REQUESTS,
)
"""Requests that are answered from the store.  All others need an editor, or run something."""

_ANSWER_SECONDS = 300.0
"""A kernel's assembly may have to be made first."""
_LANGUAGES = {".py": "python", ".pyw": "python", ".ipynb": "json"}


class Refused(Exception):
    """The request cannot be answered; the message is for the user."""


@dataclass(frozen=True)
class SourceParams:
    """A file of the user's, as a run saw it."""

    run: str
    uri: str


@dataclass(frozen=True)
class SourceText:
    """The text of a file of the user's."""

    text: str
    language_id: str
    current: bool
    """Whether the text is that of the run; else it is the file as it is now."""


@dataclass(frozen=True)
class Below:
    """The stages below a kernel."""

    stages: tuple[StageOfCompile, ...]
    """For a kernel: what the run kept of it, what was made of it, and what can be."""


@dataclass(frozen=True)
class LatestParams:
    """A file whose newest run is asked for."""

    uri: str


@dataclass(frozen=True)
class Latest:
    """The id of the newest run that has something in the file; None if there is none."""

    run: str | None


class AsRan:
    """A `ReadContext` to which the files of a run are as they ran."""

    def __init__(self, reader: Reader, sources: Mapping[str, str]) -> None:
        self.archive = reader.archive
        self.stages = reader.stages
        self.graphs = reader.graphs
        self.texts = Texts(keyed(sources).get)
        self.path_of = reader.path_of
        self.uri_of = reader.uri_of


class Reader:
    """The run store, read in its own event loop; its methods may be called in any thread.

    Args:
        store: The store's file.
        python: The interpreter whose compilers make a kernel's assembly and machine code when it is opened; None: none
            is made.
        wishes: Which findings are shown, and how.
    """

    def __init__(self, store: str, python: str = "", wishes: Wishes | None = None) -> None:
        self._python = python
        self._wishes = wishes or Wishes()
        self._turn = asyncio.Lock()
        self.on_made: Callable[[str], None] = lambda run: None
        """Called with a run that got a new stage, in the reader's thread."""
        self.archive = Archive(store)
        self.texts = Texts(lambda key: None)
        self.stages = StageReader(lambda: store)
        self.graphs = GraphCache()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="irscope-reader", daemon=True)
        self._thread.start()

    # --- what requests need of a server (`irscope_server.base.context.ReadContext`) --------------------------------------

    def path_of(self, uri: str) -> str | None:
        """The path of a ``file:`` URI; None for other schemes."""
        return to_fs_path(uri) if uri_scheme(uri) == "file" else None

    def uri_of(self, path: str) -> str:
        """The URI of a file; of an entry, that of its file."""
        if not os.path.isabs(path):
            with contextlib.suppress(BadEntry):
                path = parse_entry(path, os.getcwd()).file
        return from_fs_path(path) or path

    # --- requests -----------------------------------------------------------------------------------------------------

    def answer(self, method: str, params: Any) -> str:
        """The result of a request as JSON.  Raises Refused."""
        if method == "view/source":
            return self._answer(self._source, SourceParams, params)
        if method == "view/latest":
            return self._answer(self._latest, LatestParams, params)
        if method == "view/below":
            return self._answer(self._below, StageParams, params)
        if method == "irscope/document":
            return self._answer(self._document, UriParams, params)
        if method == "irscope/findings":
            return self._answer(self._findings, FindingsParams, params)
        if method not in READING or method not in PARAMS:
            raise Refused(f"{method} is not a request that this page can send.")
        return self._wait_for(lambda: self._read(method, params))

    def _answer(self, work: Callable[[Any], Coroutine[Any, Any, Any]], kind: type[Any], params: Any) -> str:
        return self._wait_for(lambda: work(wire.from_wire(kind, params)))

    def _wait_for(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> str:
        async def run() -> str:
            result = await work()
            return result.json if isinstance(result, Encoded) else json.dumps(wire.to_wire(result))

        try:
            return self.wait(run())
        except RequestFailed as error:
            raise Refused(error.message) from None
        except (LookupError, ValueError, StoreError) as error:
            raise Refused(str(error.args[0] if error.args else error)) from None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine of the reader's loop.  Raises what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_SECONDS)

    def close(self) -> None:
        """Close the store and end the event loop."""
        self.archive.close()
        self.stages.close()
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _read(self, method: str, params: Any) -> Any:
        """As the language server would answer if its editor had the files open as they ran: so they are shown here."""
        run = params.get("run") if isinstance(params, dict) else None
        sources = await self.archive.ask(lambda store: store.sources(run)) if isinstance(run, str) else {}
        return await features.read(AsRan(self, sources), method, params)

    async def _document(self, params: UriParams) -> DocumentResult:
        return await document(self.archive, params.uri, self._made)

    async def _made(self, report: Report, stage: str) -> str:
        """Makes a stage that needs a compiler, one at a time; returns why that is not possible, or an empty string."""
        if not self._python:
            return _not_made(report, stage)
        async with self._turn:
            problem = await asyncio.to_thread(make_stage, self.archive.path, report.run, stage, self._python)
            self.archive.forget(report.run)
        if problem:
            return cannot(stage, problem)
        self.on_made(report.run)
        return ""

    async def _findings(self, params: FindingsParams) -> Encoded:
        return await findings(self, params, self._wishes.hidden, lambda _: self._wishes.severities)

    async def _source(self, params: SourceParams) -> SourceText:
        """A file as it was in a run, or else as it is now; only files that the run names.  Raises LookupError."""
        path = self.path_of(params.uri)
        report = await self.archive.report(params.run)
        if path is None:
            raise LookupError(f"{params.uri} is not a file.")
        key = file_key(path)
        language = _LANGUAGES.get(os.path.splitext(path)[1].lower())
        sources = keyed(await self.archive.ask(lambda store: store.sources(params.run)))
        if key in sources:
            return SourceText(sources[key], language or "plaintext", True)
        told = {self.path_of(self.uri_of(report.script)) or "", *_files_of(report)}
        if language is None or key not in {file_key(file) for file in told if file}:
            raise LookupError(f"The run has no information about {os.path.basename(path)}.")
        if not os.path.isfile(path):
            raise LookupError(f"{os.path.basename(path)} no longer exists, and the run kept no copy of it.")
        return SourceText(await asyncio.to_thread(text_on_disk, path), language, False)

    async def _below(self, params: StageParams) -> Below:
        report = await self.archive.report(params.run)
        return Below(tuple(stage for stage in stages_of(report) if stage.stage.startswith(f"{params.stage}/")))

    async def _latest(self, params: LatestParams) -> Latest:
        """The newest run that has something in a file; deep ones first, since they tell more."""
        path = self.path_of(params.uri)

        def find(store: Store) -> str | None:
            if path is None:
                return None
            runs = store.runs_of_file(path)
            deep = [run for run in runs if run.lane is Lane.DEEP]
            return next((run.run for run in deep or runs), None)

        return Latest(await self.archive.ask(find))


def _not_made(report: Report, stage: str) -> str:
    """The text for a stage that needs a compiler, if none may be started."""
    return (
        f"{stage} is made by the compilers of the interpreter that ran the script, on request.\n"
        f"This page only reads (--read-only). To see it here, make it once:\n\n  irscope show {report.run} --stage {stage}\n"
    )


def _files_of(report: Report) -> Iterator[str]:
    """The files that a run names."""
    yield from (compile.file for compile in report.compiles)
    yield from (finding.file for finding in report.findings)
    yield from (related.file for finding in report.findings for related in finding.related)
    yield from (origin.file for kernel in report.kernels for origin in kernel.origins)
