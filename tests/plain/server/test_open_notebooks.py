"""Cells of notebooks that a client opens in ways that no well-behaved one does."""

from __future__ import annotations

from types import SimpleNamespace

from irscope_server.running.notebooks import Notebooks
from lsprotocol import types


def _notebooks() -> Notebooks:
    editor = SimpleNamespace(remember_open=lambda uri, path: None, remember_closed=lambda path: None)
    return Notebooks(editor)


def _opened(name: str, cells: dict[str, str]) -> types.DidOpenNotebookDocumentParams:
    return types.DidOpenNotebookDocumentParams(
        types.NotebookDocument(
            f"file:///{name}",
            "jupyter-notebook",
            1,
            [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in cells],
        ),
        [types.TextDocumentItem(uri, "python", 1, text) for uri, text in cells.items()],
    )


def test_a_document_is_a_cell_of_one_notebook() -> None:
    """Found by the fuzzer (lsp, seed 912401): closing the one took the name of the other's cell."""
    notebooks = _notebooks()
    notebooks.opened(_opened("a.ipynb", {"cell:1": "x = 1"}))
    notebooks.opened(_opened("b.ipynb", {"cell:1": "x = 1", "cell:2": "y = 2"}))
    assert notebooks.cells("/b.ipynb") == {"/b.ipynb#cell-1": "y = 2"}
    assert notebooks.closed("file:///a.ipynb") == "/a.ipynb"
    assert notebooks.cells("/b.ipynb") == {"/b.ipynb#cell-1": "y = 2"}
    assert notebooks.closed("file:///b.ipynb") == "/b.ipynb"


def test_a_notebook_that_is_opened_again_has_each_name_once() -> None:
    notebooks = _notebooks()
    notebooks.opened(_opened("a.ipynb", {"cell:1": "x = 1", "cell:2": "y = 2"}))
    notebooks.opened(_opened("a.ipynb", {"cell:3": "z = 3", "cell:1": "x = 1"}))
    assert notebooks.cells("/a.ipynb") == {"/a.ipynb#cell-1": "z = 3", "/a.ipynb#cell-2": "x = 1"}
