"""Notebooks that are open: their cells, under names that work as paths do.

A cell's document has a URI of the client's making; here it is called by its notebook and a number (`irscope.usercode.notebooks`).
The number is that of its place when it came, and stays with it while other cells come, go and move: what a run found
in it stays in it.  The text of a cell is Python, with magics made comments, and the text of a notebook is all its cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from irscope.usercode.notebooks import cell_name, joined, python_of_cell
from lsprotocol import types
from pygls.uris import to_fs_path, uri_scheme

from irscope_server.base.context import EditorContext
from irscope_server.base.texts import from_units, split_lines

_PYTHON = types.NotebookCellLanguage("python")
SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook("jupyter-notebook", [_PYTHON])], save=True
)
"""What the server asks a client to report about notebooks."""


class Notebooks:
    """Belongs to the event loop."""

    def __init__(self, editor: EditorContext) -> None:
        self._editor = editor
        self._names: dict[str, str] = {}
        """Names by the URI of the cell's document."""
        self._sources: dict[str, str] = {}
        """What is in the cells, by the URI of their documents."""
        self._cells: dict[str, list[str]] = {}
        """URIs of the cells' documents from top to bottom, by path of the notebook."""
        self._count: dict[str, int] = {}
        """The largest number that a cell of the notebook has had."""

    def name_of(self, uri: str) -> str | None:
        """The name of a cell that is known."""
        return self._names.get(uri)

    def cells(self, path: str) -> dict[str, str]:
        """Texts of the cells of an open notebook, by name, top to bottom; none if the file is not a notebook."""
        return {self._names[uri]: self._text_of_cell(uri) for uri in self._cells.get(path, ())}

    def text_of(self, uri: str, path: str) -> str:
        """The text of a notebook or of a cell."""
        return joined(self.cells(path)) if path in self._cells else self._text_of_cell(uri)

    def _text_of_cell(self, uri: str) -> str:
        return python_of_cell(self._sources.get(uri, ""))

    def opened(self, params: types.DidOpenNotebookDocumentParams) -> str | None:
        """The path of a notebook that has been opened; None if it is not a file."""
        uri = params.notebook_document.uri
        path = to_fs_path(uri) if uri_scheme(uri) == "file" else None
        if path is None:
            return None
        if path in self._cells:  # opened twice, and not closed between
            self._arrange(path, ())
        self._cells[path] = []
        self._count[path] = 0
        self._editor.remember_open(uri, path)
        self._take(params.cell_text_documents)
        self._arrange(path, params.notebook_document.cells)
        return path

    def changed(self, params: types.DidChangeNotebookDocumentParams) -> str | None:
        """Cells have come, gone or moved, or have another text; the path of the notebook, if it is known."""
        uri = params.notebook_document.uri
        path = to_fs_path(uri)
        notebook = self._editor.workspace.get_notebook_document(notebook_uri=uri)
        if path is None or path not in self._cells or notebook is None:
            return None
        if (change := params.change.cells) is not None:
            if change.structure is not None:
                self._take(change.structure.did_open or ())
                self._arrange(path, notebook.cells)
            for text in change.text_content or ():
                for one in text.changes:
                    self._edit(text.document.uri, one)
        self._editor.texts.changed()
        return path

    def closed(self, uri: str) -> str | None:
        """The path of a notebook that has been closed, with its cells."""
        path = to_fs_path(uri)
        if path is None or path not in self._cells:
            return None
        self._arrange(path, ())
        del self._cells[path]
        self._editor.remember_closed(path)
        return path

    def _take(self, documents: Sequence[types.TextDocumentItem]) -> None:
        for document in documents:
            if document.language_id == "python":
                self._sources[document.uri] = document.text

    def _arrange(self, path: str, cells: Sequence[types.NotebookCell]) -> None:
        """Gives names to new cells, and forgets those that are gone.

        A document that is a cell of another notebook stays that one's: it has one name, which goes with its notebook.
        """
        others = {uri for each, uris in self._cells.items() if each != path for uri in uris}
        code = [cell.document for cell in cells if cell.kind is types.NotebookCellKind.Code]
        uris = [uri for uri in code if uri in self._sources and uri not in others]
        for uri in set(self._cells[path]) - set(uris):
            self._editor.remember_closed(self._names.pop(uri))
            self._sources.pop(uri, None)
        for uri in uris:
            if uri not in self._names:
                self._count[path] += 1
                self._names[uri] = cell_name(path, self._count[path])
                self._editor.remember_open(uri, self._names[uri])
        self._cells[path] = uris

    def _edit(self, uri: str, change: types.TextDocumentContentChangeEvent) -> None:
        """Texts of cells change in pieces, whatever a server says that it wants of other documents."""
        if uri not in self._sources:
            return
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            self._sources[uri] = change.text
            return
        lines = split_lines(self._sources[uri])
        start, end = change.range.start, change.range.end
        if start.line >= len(lines):
            self._sources[uri] = "\n".join(lines) + change.text
            return
        before = lines[start.line][: from_units(lines[start.line], start.character, self._editor.encoding)]
        last = lines[end.line] if end.line < len(lines) else ""
        after = last[from_units(last, end.character, self._editor.encoding) :]
        self._sources[uri] = "\n".join([*lines[: start.line], before + change.text + after, *lines[end.line + 1 :]])
