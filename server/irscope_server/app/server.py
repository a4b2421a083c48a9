"""The language server: its documents, its client and its settings."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable
from typing import Any
from urllib.parse import unquote

from irscope import __version__
from irscope.usercode.notebooks import is_notebook, notebook_of
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path, uri_scheme

from irscope_server.base import wire
from irscope_server.base.archive import Archive
from irscope_server.base.context import Document
from irscope_server.base.messages import IrscopeProtocol, RequestFailed, fast_converter, pulls_diagnostics
from irscope_server.base.settings import SECTION, Settings, read_settings
from irscope_server.base.texts import FileKey, Texts, file_key, script_key
from irscope_server.graph.requests import GraphCache
from irscope_server.language.applied_control import Controls
from irscope_server.language.diagnostics import Publisher
from irscope_server.language.line_facts import LineFactsOfRuns
from irscope_server.language.views import Views
from irscope_server.running.activity import Activity, Parts
from irscope_server.running.candidates import Search
from irscope_server.running.entries import BadEntry, parse_entry
from irscope_server.running.file_states import FileStates
from irscope_server.running.measured import Profiles
from irscope_server.running.measurements import Measurements
from irscope_server.running.notebooks import SYNC, Notebooks
from irscope_server.running.plans import Planner
from irscope_server.running.proofs import Proofs
from irscope_server.running.results import Results
from irscope_server.running.runs import Execute, Runs
from irscope_server.running.since_last_run import SinceLastRun
from irscope_server.running.warming import Warming
from irscope_server.running.worker_notices import WorkerNotices
from irscope_server.running.workers import Workers
from irscope_server.stages.linked import StageReader
from irscope_server.stages.on_demand import OnDemand
from irscope_server.stages.texts import StageTexts

log = logging.getLogger(__name__)

_ANSWER_SECONDS = 2.0
"""How long a client may take to answer with its configuration before what is known is used."""


class IrscopeServer(LanguageServer):
    """State of the server.  Everything here belongs to the event loop.

    Args:
        execute: Replaces `irscope.driver.driver.execute`, for tests.
    """

    protocol: IrscopeProtocol

    def __init__(self, execute: Execute | None = None) -> None:
        # Full texts, since pygls applies incremental changes to lines as `str.splitlines` sees them (form feeds!).
        super().__init__(
            "irscope",
            __version__,
            types.TextDocumentSyncKind.Full,
            protocol_cls=IrscopeProtocol,
            converter_factory=fast_converter,
            notebook_document_sync=SYNC,
        )
        self.settings = Settings()
        self.trusted = True
        self.rich_hovers = False
        self.options: Any = None
        self.texts = Texts(self._buffer_of)
        self._settings_of: dict[FileKey, Settings] = {}
        self.controls = Controls(
            lambda script: self._settings_of.get(file_key(script), self.settings),
            self.folder_of,
            self.texts.lines,
            self._complain,
        )
        self.results = Results(self.controls)
        self.views = Views(self.results, self.texts)
        self.line_facts = LineFactsOfRuns(self)
        self.planner = Planner(self, self.results)
        self.profiles = Profiles(self, self.planner)
        self.candidates = Search()
        self.workers = Workers()
        self.runs = Runs(execute, self.workers)
        self.proofs = Proofs(self.workers, enabled=execute is None)
        self.publisher = Publisher(self, self.results, self.views)
        self.notebooks = Notebooks(self)
        self.notices = WorkerNotices(self, self.runs, self.workers)
        since_last_run = SinceLastRun(self, self.results, self.controls.hidden)
        self.activity = Activity(
            self,
            Parts(
                planner=self.planner,
                results=self.results,
                runs=self.runs,
                workers=self.workers,
                notebooks=self.notebooks,
                warming=Warming(self, self.workers, execute is None, self.notices.tell),
                notices=self.notices,
                file_states=FileStates(self, self.planner, self.results, since_last_run),
                since_last_run=since_last_run,
                proofs=self.proofs,
                diagnostics_changed=self.publisher.changed,
            ),
        )
        self.measurements = Measurements(self)
        self.archive = Archive(self.settings.store)
        self.graphs = GraphCache()
        self.on_demand = OnDemand(self, self._python_of)
        self.stages = StageReader(lambda: self.archive.path)
        self.stage_texts = StageTexts()
        self._complaints: set[str] = set()
        self._open: dict[FileKey, Document] = {}
        self._background: set[asyncio.Future[Any]] = set()

    # --- documents ----------------------------------------------------------------------------------------------------

    def path_of(self, uri: str) -> str | None:
        """The path of a ``file:`` URI, the name of a notebook's cell; None for other schemes."""
        return self.notebooks.name_of(uri) or (to_fs_path(uri) if uri_scheme(uri) == "file" else None)

    def document(self, uri: str) -> Document | None:
        """The document of a ``file:`` URI or of a notebook's cell; None for other schemes."""
        path = self.path_of(uri)
        return None if path is None else Document(uri, path)

    def uri_of(self, path: str) -> str:
        """The URI of a file, as the client wrote it where the file is open; of what the store calls a module or a
        test that of the file that it begins with."""
        if not os.path.isabs(path):
            with contextlib.suppress(BadEntry):
                path = parse_entry(path, self.folder_of(path)).file
        if (document := self._open.get(file_key(path))) is not None:
            return document.uri
        path = notebook_of(path) or path  # of a notebook that is not open
        return from_fs_path(path) or path

    def is_open(self, key: FileKey) -> bool:
        """Whether the editor has the file open."""
        return key in self._open

    def open_files(self) -> list[Document]:
        """The Python files and the notebooks that are open."""
        return [document for document in self._open.values() if notebook_of(document.path) is None]

    def open_documents(self) -> list[Document]:
        """The same, and the cells of the notebooks."""
        return list(self._open.values())

    def version_of(self, path: str) -> int | None:
        """The client's version number of an open document; None if the file is not open or has no version."""
        document = self._open.get(file_key(path))
        text = self.workspace.text_documents.get(unquote(document.uri)) if document else None
        return None if text is None else text.version

    def open_beside(self, entry: FileKey | None) -> list[str]:
        """Paths of the open Python files that count in a run of a file: all but other notebooks with their cells."""
        documents = self._open.values()
        return [file.path for file in documents if not _is_of_notebook(file.path) or file.script.key == entry]

    def overlays(self, entry: FileKey | None = None) -> dict[str, str]:
        """Texts of open Python files that differ from what is on disk, by path, for a run of a file."""
        beside = self.open_beside(entry)
        return {path: "\n".join(self.texts.lines(path)) for path in beside if not self.texts.is_as_on_disk(path)}

    def key_of(self, path: str) -> str:
        """The key of the entry that runs a file: its own, or that of what runs it as a library module."""
        key = script_key(path)
        plan = self.planner.plans.get(key)
        return plan.entry.key if plan else key

    def _python_of(self, script: str) -> str | None:
        """The interpreter with which a script would run now; None if no plan of it is known."""
        plan = self.planner.plans.get(file_key(script))
        return plan.python if plan else None

    def folder_of(self, path: str) -> str:
        """The workspace folder that a file is in, the innermost one; without one the file's own folder."""
        folders = [to_fs_path(uri) for uri in self.workspace.folders] or [self.workspace.root_path]
        if not os.path.isabs(path):  # what the store calls a module or a test
            return next((folder for folder in folders if folder), "")
        key = file_key(path)
        around = [folder for folder in folders if folder and key.startswith(os.path.join(file_key(folder), ""))]
        return max(around, key=len, default=os.path.dirname(path))

    def remember_open(self, uri: str, path: str) -> None:
        """Note that the editor opened a file, under this URI."""
        document = Document(uri, path)
        self._open[document.key] = document
        self.texts.changed()

    def remember_closed(self, path: str) -> None:
        """Note that the editor closed a file; its text comes from disk again."""
        self._open.pop(file_key(path), None)
        self.texts.changed()

    def _buffer_of(self, key: FileKey) -> str | None:
        document = self._open.get(key)
        if document is None:
            return None
        if _is_of_notebook(document.path):
            return self.notebooks.text_of(document.uri, document.path)
        # pygls would read a document that is not open from disk, whatever is there.
        text = self.workspace.text_documents.get(unquote(document.uri))
        return None if text is None else text.source

    # --- the client ---------------------------------------------------------------------------------------------------

    @property
    def encoding(self) -> str:
        """Unit of columns that was agreed on: ``utf-8``, ``utf-16`` or ``utf-32``."""
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding) or "utf-16")

    @property
    def pulls(self) -> bool:
        """Whether the client asks for diagnostics; then none are published."""
        return pulls_diagnostics(self.client_capabilities)

    @property
    def shows_progress(self) -> bool:
        """Whether the client can show progress in its window."""
        window = self.client_capabilities.window
        return window is not None and bool(window.work_done_progress)

    @property
    def edits_versions(self) -> bool:
        """Whether the client applies edits to a version of a document."""
        workspace = self.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace is not None else None
        return edits is not None and bool(edits.document_changes)

    @property
    def reviews_edits(self) -> bool:
        """Whether the client can show edits of several files before it applies them."""
        workspace = self.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace is not None else None
        return self.edits_versions and edits is not None and edits.change_annotation_support is not None

    def can_refresh(self, method: str) -> bool:
        """Whether the client can be asked to ask again for diagnostics, lenses or inlay hints."""
        workspace = self.client_capabilities.workspace
        if workspace is None:
            return False
        options = {
            "workspace/diagnostic/refresh": workspace.diagnostics,
            "workspace/inlayHint/refresh": workspace.inlay_hint,
        }.get(method, workspace.code_lens)
        return options is not None and bool(options.refresh_support)

    def refresh(self, method: str) -> None:
        """Send a ``workspace/…/refresh``, so that the client asks again; does nothing if it cannot."""
        if self.can_refresh(method):
            self.in_background(self.protocol.send_request_async(method))

    def tell(self, method: str, params: object) -> None:
        """Sends one of irscope's own notifications."""
        self.protocol.notify(method, wire.to_wire(params))

    def show_message(self, message: str) -> None:
        """Show a warning in the client's window."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """To the log only.  pygls' own way is a message box per error, and an error in sending is another error."""
        if isinstance(error, RequestFailed):
            return  # the client that asked has the error already
        log.error("%s: %s", getattr(source, "__name__", source), error)

    def in_background(self, request: Awaitable[Any]) -> None:
        """Keeps a request alive whose answer does not matter."""
        future = asyncio.ensure_future(request)
        self._background.add(future)

        def done(future: asyncio.Future[Any]) -> None:
            self._background.discard(future)
            if not future.cancelled() and (error := future.exception()) is not None:
                log.debug("The client answered with an error: %s", error)

        future.add_done_callback(done)

    # --- settings -----------------------------------------------------------------------------------------------------

    async def settings_for(self, uri: str | None) -> Settings:
        """The settings of a document's folder; where the client does not answer, those known so far."""
        configuration = await self._configuration(uri)
        settings = self.settings if configuration is None else self.read_options(self.options, configuration)
        if uri is not None and (document := self.document(uri)) is not None:
            self._settings_of[document.key] = settings
        return settings

    def remember_settings(self, path: str, settings: Settings) -> None:
        """The settings with which a file runs that may not be open."""
        self._settings_of.setdefault(file_key(path), settings)

    async def load_settings(self, given: Any = None) -> None:
        """Reads the settings again; opens another store where its path has changed."""
        configuration = await self._configuration(None)
        self.settings = self.read_options(self.options, given, configuration)
        self._settings_of.clear()
        if self.settings.store != self.archive.path:
            self.archive.close()
            self.archive = Archive(self.settings.store)

    async def _configuration(self, uri: str | None) -> Any:
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return None
        item = types.ConfigurationItem(scope_uri=uri, section=SECTION)
        with contextlib.suppress(Exception):  # no answer, a refusal: the settings stay as they are
            answer = await asyncio.wait_for(
                self.workspace_configuration_async(types.ConfigurationParams([item])), _ANSWER_SECONDS
            )
            return answer[0] if answer else None
        return None

    def read_options(self, *sources: Any) -> Settings:
        """Settings from what the client sent; what is wrong in it is logged, once."""
        settings, complaints = read_settings(*sources)
        for complaint in complaints:
            if complaint not in self._complaints:
                self._complaints.add(complaint)
                log.warning("%s", complaint)
        return settings

    def _complain(self, message: str) -> None:
        """To the user, once."""
        if message not in self._complaints:
            self._complaints.add(message)
            log.warning("%s", message)
            self.show_message(message)

    def close(self) -> None:
        """Stops everything that runs."""
        self.activity.idle.close()
        self.measurements.close()
        self.proofs.close()
        self.runs.close()
        self.workers.close()
        self.stages.close()
        self.archive.close()


def _is_of_notebook(path: str) -> bool:
    """Whether it is a notebook or a cell of one."""
    return notebook_of(path) is not None or is_notebook(path)
