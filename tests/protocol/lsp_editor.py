"""An editor as the server sees one: a language client with a few documents, driven by tests."""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
import server_forks
from lsprotocol import types
from pygls.io_ import run_async
from pytest_lsp import ClientServerConfig, LanguageClient
from pytest_lsp.client import make_test_lsp_client
from server_forks import ServerFork, fork_of
from support import Instant, late


def edits_in(action: types.CodeAction) -> dict[str, list[types.TextEdit]]:
    """The edits of an action by document; all documents are named once."""
    assert action.edit is not None
    found = {uri: list(edits) for uri, edits in (action.edit.changes or {}).items()}
    for document in action.edit.document_changes or ():
        assert isinstance(document, types.TextDocumentEdit) and document.text_document.uri not in found
        edits = [edit for edit in document.edits if isinstance(edit, (types.TextEdit, types.AnnotatedTextEdit))]
        assert len(edits) == len(document.edits)
        found[document.text_document.uri] = [types.TextEdit(edit.range, edit.new_text) for edit in edits]
    return found


def versions_in(action: types.CodeAction) -> dict[str, int | None]:
    """The version of each document that an action edits."""
    documents = (action.edit.document_changes if action.edit is not None else None) or ()
    known = [one.text_document for one in documents if isinstance(one, types.TextDocumentEdit)]
    return {one.uri: one.version for one in known}


def in_units(text: str, edits: list[types.TextEdit]) -> str:
    """A text with edits applied as a client does it that counts in UTF-16, whatever ends its lines have."""
    starts, data = [0], text.encode("utf-16-le", "surrogatepass")
    for sign in re.finditer("\r\n|\n|\r", text):
        starts.append(len(text[: sign.end()].encode("utf-16-le", "surrogatepass")))

    def offset(at: types.Position) -> int:
        return starts[at.line] + 2 * at.character

    spans = sorted(((offset(one.range.start), offset(one.range.end), n) for n, one in enumerate(edits)), reverse=True)
    for start, end, n in spans:
        data = data[:start] + edits[n].new_text.encode("utf-16-le", "surrogatepass") + data[end:]
    return data.decode("utf-16-le", "surrogatepass")


HERE = Path(__file__).parent
SERVER = [sys.executable, "-m", "irscope_server"]
PLAYING_SERVER = [sys.executable, str(HERE / "playing_server.py")]
_FORKED = {"irscope_server": server_forks.LANGUAGE_SERVER, PLAYING_SERVER[-1]: server_forks.PLAYING_SERVER}


class Editor:
    """A client with its server process.

    ``told`` holds the parameters of irscope's own notifications by method, in the order they came.
    """

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.told: dict[str, list[Any]] = {}
        self.lens_refreshes = 0
        self.pulls = False
        self.result: types.InitializeResult | None = None
        self._published: list[str] = []
        self._opened: set[str] = set()
        self.published_codes: dict[str, list[list[Any]]] = {}
        """By document the codes of each publication, in the order they came."""
        protocol: Any = client.protocol
        received = protocol._handle_notification

        def note(method: str, params: Any) -> None:
            if method == types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS:
                self._published.append(params.uri)
                codes = [diagnostic.code for diagnostic in params.diagnostics]
                self.published_codes.setdefault(params.uri, []).append(codes)
            received(method, params)

        protocol._handle_notification = note
        for method in ("irscope/worker", "irscope/runsChanged", "irscope/output", "irscope/fileState"):
            self._keep(method)

        def refreshed(params: Any) -> None:
            self.lens_refreshes += 1

        client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(refreshed)

    def _keep(self, method: str) -> None:
        def keep(params: Any) -> None:
            self.told.setdefault(method, []).append(params)

        self.client.feature(method)(keep)

    @staticmethod
    async def start(
        command: list[str],
        *,
        like: str = "visual-studio-code",
        options: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        pull: bool | None = False,
        change: Callable[[types.ClientCapabilities], None] = lambda capabilities: None,
        env: dict[str, str] | None = None,
        folder: Path | None = None,
        fresh: bool = False,
    ) -> Editor:
        """Starts a server and initializes it with the capabilities of a real client.

        ``pull`` says whether it pulls diagnostics; nothing: as the real one does.  ``fresh``: in a process of its own,
        for tests of what the process holds and starts; the others get a fork (see `server_forks`).
        """
        forked = None if fresh or command[-1] not in _FORKED else fork_of(_FORKED[command[-1]], env)
        config = ClientServerConfig(command, server_env=env)
        client = await (config.start() if forked is None else _connected(forked))
        assert isinstance(client, LanguageClient)
        editor = Editor(client)
        client.set_configuration({"irscope": settings or {}})
        capabilities = copy.deepcopy(_capabilities(like))
        assert capabilities.text_document and capabilities.workspace
        if pull is False:
            capabilities.text_document.diagnostic = None
        elif pull:
            capabilities.text_document.diagnostic = types.DiagnosticClientCapabilities()
            capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
        change(capabilities)
        editor.result = await client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities,
                initialization_options=options,
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)] if folder else None,
            )
        )
        editor.pulls = editor.result is not None and editor.result.capabilities.diagnostic_provider is not None
        return editor

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self.client.shutdown_session(), 10)
        except Exception:  # noqa: BLE001  the test that has failed says why
            if self.client._server is not None and not self.has_ended:
                self.client._server.terminate()  # nobody else tells it to end
        await self.client.stop()

    # --- one for several tests ---------------------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        return self.client._server is None or self.client._server.returncode is not None

    def begin_anew(self, settings: dict[str, Any], folder: Path) -> None:
        """Forgets what it was told, and gives a folder its settings."""
        self.lens_refreshes = 0
        for told in (self.told, self._published, self.published_codes, self.client.diagnostics, self.client.messages):
            told.clear()
        self.client.log_messages.clear()
        self.client.set_configuration({"irscope": settings}, scope_uri=folder.as_uri())

    async def leave(self, folder: Path) -> None:
        """Closes the documents of a folder, and ends their runs."""
        for uri in [uri for uri in self._opened if uri.startswith(folder.as_uri()) and not self.has_ended]:
            self.close_document(uri)
            await self.request("irscope/cancel", uri=uri)
        await self.until(lambda: self.has_ended or self.state != "running")

    # --- documents ----------------------------------------------------------------------------------------------------

    def open(self, path: Path, text: str | None = None) -> str:
        uri = path.as_uri()
        text = path.read_text() if text is None else text
        self._opened.add(uri)
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text))
        )
        return uri

    def change(self, uri: str, text: str, version: int = 2) -> None:
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=version, uri=uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def save(self, uri: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close_document(self, uri: str) -> None:
        self._opened.discard(uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    # --- what it shows ------------------------------------------------------------------------------------------------

    @property
    def progress(self) -> dict[Any, list[Any]]:
        """By token what the server reported.  The client declares them as messages, and keeps what these carry."""
        return self.client.progress_reports

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        return list(self.client.diagnostics.get(uri, []))

    def codes(self, uri: str) -> list[Any]:
        return [diagnostic.code for diagnostic in self.diagnostics(uri)]

    def published(self, uri: str) -> list[str]:
        """An entry for each time that diagnostics of a document were published."""
        return [published for published in self._published if published == uri]

    async def lenses(self, uri: str) -> list[tuple[int, str]]:
        """Line and title of each lens."""
        lenses = await self.client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(uri))
        )
        return [(lens.range.start.line, lens.command.title) for lens in lenses or [] if lens.command]

    async def hover(self, uri: str, line: int, character: int) -> str:
        hover = await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        )
        if hover is None:
            return ""
        assert isinstance(hover.contents, types.MarkupContent)
        return hover.contents.value

    async def request(self, method: str, **params: Any) -> Any:
        """One of irscope's own requests."""
        return await self.client.protocol.send_request_async(method, params)

    def file_state(self, uri: str) -> Any:
        """What was told last of a file."""
        return next((told for told in reversed(self.told.get("irscope/fileState", [])) if told.uri == uri), None)

    @property
    def log(self) -> str:
        return "\n".join(entry.message for entry in self.client.log_messages)

    @property
    def state(self) -> str:
        states = self.told.get("irscope/worker", [])
        return states[-1].state if states else ""

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits until something is so."""
        await until(condition, seconds)

    async def until_ended(self, runs: int = 1, seconds: float = 120.0) -> None:
        """Waits until so many runs have ended."""
        await until(lambda: sum(not told.running for told in self.told.get("irscope/runsChanged", [])) >= runs, seconds)


class _Forked:
    """What a client wants of `asyncio.subprocess.Process`."""

    def __init__(self, fork: ServerFork) -> None:
        self._fork, self.pid = fork, fork.pid
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(fork, self._end)

    @property
    def returncode(self) -> int | None:
        return self._fork.returncode

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fork)
        self._fork.wait()
        self._ended.set()

    def terminate(self) -> None:
        self._fork.terminate()

    async def wait(self) -> int:
        await self._ended.wait()
        return self._fork.wait()


async def _connected(fork: ServerFork) -> LanguageClient:
    """As `JsonRPCClient.start_io`, with a server that is there."""
    client, loop = make_test_lsp_client(), asyncio.get_running_loop()
    for output in (reader := asyncio.StreamReader(), fork.stdout), (asyncio.StreamReader(), fork.stderr):
        await loop.connect_read_pipe(lambda output=output: asyncio.StreamReaderProtocol(output[0]), output[1])  # type: ignore[misc]
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), fork.stdin
    )
    client.protocol.set_writer(asyncio.StreamWriter(transport, protocol, None, loop))
    client._server = _Forked(fork)  # type: ignore[assignment]
    reading = run_async(
        stop_event=client._stop_event,
        reader=reader,
        protocol=client.protocol,
        logger=logging.getLogger(__name__),
        error_handler=client.report_server_error,
    )
    client._async_tasks += [asyncio.create_task(reading), asyncio.create_task(client._server_exit())]
    return client


@functools.cache
def _capabilities(like: str) -> types.ClientCapabilities:
    return pytest_lsp.client_capabilities(like)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    begun = Instant()
    while not condition():
        assert not late(begun, seconds), "it did not come to be in time"
        await asyncio.sleep(0.01)


StartEditor = Callable[..., Awaitable[Editor]]
AtWork = Callable[..., Awaitable[Editor]]
SHARED = pytest.mark.asyncio(loop_scope="session")


def data_of(diagnostic: types.Diagnostic) -> dict[str, Any]:
    """What irscope put into a diagnostic for its quick fixes."""
    assert diagnostic.data is not None
    data: dict[str, Any] = diagnostic.data
    return data
