"""What the rooms of the server may ask of the program.

The language server is an `EditorContext`.  `irscope view` has no editor and is a `ReadContext`.
A room that needs more, such as results of runs, extends one of these protocols or takes it as a parameter.
This module imports none of its users, so no module has to import the server.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from irscope.usercode.notebooks import notebook_of
from lsprotocol import types
from pygls.workspace import Workspace

from irscope_server.base.archive import Archive
from irscope_server.base.settings import Settings
from irscope_server.base.texts import FileKey, Texts, file_key


@dataclass(frozen=True)
class Document:
    """A file, a notebook or a cell of one, as the editor names it."""

    uri: str
    path: str
    """The name of a cell."""

    @functools.cached_property
    def key(self) -> FileKey:
        """What the file is looked up by."""
        return file_key(self.path)

    @property
    def script(self) -> Document:
        """What is run for it: the file itself; for a cell, its notebook."""
        notebook = notebook_of(self.path)
        return self if notebook is None else Document(self.uri, notebook)


class ReadContext(Protocol):
    """The run store, the texts of files, and the addresses of files."""

    @property
    def archive(self) -> Archive:
        """The run store."""

    @property
    def texts(self) -> Texts:
        """The texts of files as the editor has them."""

    def path_of(self, uri: str) -> str | None:
        """The path of a ``file:`` URI, or the name of a notebook's cell; None for other schemes."""

    def uri_of(self, path: str) -> str:
        """The URI of a file, or of what the store calls a module or a test."""


class Documents(ReadContext, Protocol):
    """The documents that are open in the editor.  Cells of notebooks count as files."""

    def document(self, uri: str) -> Document | None:
        """The document of a ``file:`` URI or of a notebook's cell; None for other schemes."""

    def is_open(self, key: FileKey) -> bool:
        """Whether the editor has the file open."""

    def open_files(self) -> list[Document]:
        """The Python files and the notebooks that are open."""

    def open_documents(self) -> list[Document]:
        """The same, and the cells of the notebooks."""

    def open_beside(self, entry: FileKey | None) -> list[str]:
        """Paths of the open Python files that count in a run of a file."""

    def overlays(self, entry: FileKey | None = None) -> dict[str, str]:
        """Texts of open Python files that differ from what is on disk, by path, for a run of a file."""

    def version_of(self, path: str) -> int | None:
        """The client's version number of an open document; None if the file is not open or has no version."""

    def key_of(self, path: str) -> str:
        """The key of the entry that runs a file."""

    def folder_of(self, path: str) -> str:
        """The workspace folder that a file is in; without one the file's own folder."""

    def remember_open(self, uri: str, path: str) -> None:
        """Note that the editor opened a file, under this URI."""

    def remember_closed(self, path: str) -> None:
        """Note that the editor closed a file."""


class Client(Protocol):
    """The editor on the other side of the protocol: what it can do, and what it is sent."""

    @property
    def encoding(self) -> str:
        """Unit of columns that was agreed on: ``utf-8``, ``utf-16`` or ``utf-32``."""

    @property
    def pulls(self) -> bool:
        """Whether the client asks for diagnostics; then none are published."""

    @property
    def shows_progress(self) -> bool:
        """Whether the client can show progress in its window."""

    @property
    def edits_versions(self) -> bool:
        """Whether the client applies edits to a version of a document."""

    @property
    def reviews_edits(self) -> bool:
        """Whether the client can show edits of several files before it applies them."""

    @property
    def workspace(self) -> Workspace:
        """pygls' record of the documents that the client has opened."""

    def can_refresh(self, method: str) -> bool:
        """Whether the client can be asked to ask again for diagnostics, lenses or inlay hints."""

    def refresh(self, method: str) -> None:
        """Ask the client to request something again; does nothing if it cannot."""

    def tell(self, method: str, params: object) -> None:
        """Sends one of irscope's own notifications."""

    def show_message(self, message: str) -> None:
        """Show a warning in the client's window."""

    def in_background(self, request: Awaitable[Any]) -> None:
        """Keeps a request alive whose answer does not matter."""

    def progress(self, params: types.ProgressParams) -> None:
        """Send ``$/progress``."""

    async def window_work_done_progress_create_async(self, params: types.WorkDoneProgressCreateParams) -> None:
        """Ask the client to accept a progress token; raises where it refuses."""

    def text_document_publish_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        """Send the diagnostics of one document; they replace the earlier ones."""


class EditorContext(Documents, Client, Protocol):
    """Documents, client and settings of an editor."""

    @property
    def trusted(self) -> bool:
        """Whether the workspace is trusted; nothing is run in one that is not."""

    @property
    def rich_hovers(self) -> bool:
        """Whether the client shows diagnostics at the pointer by itself, and folds ``<details>``."""

    @property
    def settings(self) -> Settings:
        """The settings of the whole workspace."""

    async def settings_for(self, uri: str | None) -> Settings:
        """The settings of a document's folder."""

    def remember_settings(self, path: str, settings: Settings) -> None:
        """The settings with which a file runs that may not be open."""
