"""Notebooks with the real server process: findings, lenses, hovers and kernels in cells; runs are played but for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import to_json
from irscope.usercode.notebooks import cell_name
from lsp_editor import SHARED, AtWork, Editor, StartEditor
from lsprotocol import types
from made import GRAPH, compile_of, finding, kernel, stage

Play = Callable[..., Path]

CELLS = (
    "%matplotlib inline\nimport torch",
    "# the model\n\n@torch.compile\ndef f(x):\n    y = torch.relu(x)\n    print('hi')\n    return y.sin() + 1",
    "%time f(torch.ones(4, 8))",
)


class Notebook:
    """A notebook that an editor has open."""

    def __init__(self, editor: Editor, path: Path, cells: tuple[str, ...] = CELLS) -> None:
        self.editor, self.path, self.uri = editor, path, path.as_uri()
        self.uris: list[str] = []
        self.version = 0
        documents = [self._new(text) for text in cells]
        editor.client.notebook_document_did_open(
            types.DidOpenNotebookDocumentParams(
                types.NotebookDocument(self.uri, "jupyter-notebook", 0, [self._cell(uri) for uri in self.uris]),
                documents,
            )
        )

    def _new(self, text: str, at: int | None = None) -> types.TextDocumentItem:
        uri = f"vscode-notebook-cell:{self.path}#W{self.version}s{len(self.uris)}"
        self.uris.insert(len(self.uris) if at is None else at, uri)
        return types.TextDocumentItem(uri, "python", 1, text)

    def _cell(self, uri: str) -> types.NotebookCell:
        return types.NotebookCell(types.NotebookCellKind.Code, uri)

    def _changed(self, change: types.NotebookDocumentCellChanges) -> None:
        self.version += 1
        self.editor.client.notebook_document_did_change(
            types.DidChangeNotebookDocumentParams(
                types.VersionedNotebookDocumentIdentifier(self.version, self.uri),
                types.NotebookDocumentChangeEvent(cells=change),
            )
        )

    def insert(self, at: int, text: str) -> None:
        self.version += 1
        document = self._new(text, at)
        array = types.NotebookCellArrayChange(at, 0, [self._cell(document.uri)])
        structure = types.NotebookDocumentCellChangeStructure(array, did_open=[document])
        self._changed(types.NotebookDocumentCellChanges(structure=structure))

    def delete(self, at: int) -> None:
        gone = types.TextDocumentIdentifier(self.uris.pop(at))
        array = types.NotebookCellArrayChange(at, 1)
        structure = types.NotebookDocumentCellChangeStructure(array, did_close=[gone])
        self._changed(types.NotebookDocumentCellChanges(structure=structure))

    def swap(self, at: int) -> None:
        """A cell and the one below it; their documents stay open."""
        self.uris[at : at + 2] = reversed(self.uris[at : at + 2])
        array = types.NotebookCellArrayChange(at, 2, [self._cell(uri) for uri in self.uris[at : at + 2]])
        structure = types.NotebookDocumentCellChangeStructure(array)
        self._changed(types.NotebookDocumentCellChanges(structure=structure))

    def edit(self, cell: int, line: int, start: int, end: int, text: str) -> None:
        """As VS Code does it: a piece of the cell's text."""
        place = types.Range(types.Position(line, start), types.Position(line, end))
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(self.version + 2, self.uris[cell]),
            [types.TextDocumentContentChangePartial(range=place, text=text)],
        )
        self._changed(types.NotebookDocumentCellChanges(text_content=[content]))

    def save(self) -> None:
        self.editor.client.notebook_document_did_save(
            types.DidSaveNotebookDocumentParams(types.NotebookDocumentIdentifier(self.uri))
        )

    def close(self) -> None:
        documents = [types.TextDocumentIdentifier(uri) for uri in self.uris]
        self.editor.client.notebook_document_did_close(
            types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(self.uri), documents)
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "my notebook.ipynb"
    cells = [{"cell_type": "code", "source": text} for text in CELLS]
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return file


def act(path: Path) -> dict[str, Any]:
    cell = cell_name(str(path), 2)
    graph = [to_json(stage("0/0", "dynamo-graph")), GRAPH.format(script=cell)]
    code = [{"id": "0/0/kernel/k0", "name": "kernel", "language": "cpp", "bytes": 0}, "void k0() {}\n"]
    return {
        "findings": [to_json(finding(cell, 6, 4, 15))],
        "compiles": [[to_json(compile_of(cell, "0/0", "f", 3)), [graph, code]]],
        "kernels": [to_json(kernel("k0", "0/0", (cell, 5)))],
    }


def asked(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "play.json.asked").read_text().splitlines()]


async def test_what_is_found_stands_in_the_cell(
    start_editor: StartEditor, play: Play, path: Path, tmp_path: Path
) -> None:
    play(act(path))

    def knows_notebooks(capabilities: types.ClientCapabilities) -> None:
        sync = types.NotebookDocumentSyncClientCapabilities()
        capabilities.notebook_document = types.NotebookDocumentClientCapabilities(sync)

    settings = {"run": {"onSave": "deep"}, "inlayHints": {"enabled": True}}
    editor = await start_editor(playing=True, settings=settings, change=knows_notebooks)
    assert editor.result and editor.result.capabilities.notebook_document_sync
    notebook = Notebook(editor, path)
    _, cell, _ = notebook.uris
    await editor.until_ended()
    await editor.until(lambda: editor.codes(cell) == ["GB0059"])
    assert editor.diagnostics(cell)[0].range == types.Range(types.Position(5, 4), types.Position(5, 15))
    assert not any(editor.diagnostics(uri) for uri in (notebook.uris[0], notebook.uris[2], notebook.uri))
    (run,) = asked(tmp_path)
    assert (run["entry"], run["script"], run["cwd"]) == ("notebook", str(path), str(tmp_path))
    assert run["cells"] == [cell_name(str(path), number) for number in (1, 2, 3)]
    assert set(run["cells"]) < set(run["overlays"])
    assert run["texts"][run["cells"][0]] == "# %matplotlib inline\nimport torch"

    assert await editor.lenses(cell) == [(2, "1 cause · see line 6"), (2, "1 graph · 1 break · 1 kernel · 500 ms")]
    assert "Graph break" in await editor.hover(cell, 5, 6)
    assert "`relu` · gives `f32[4, 8]`" in await editor.hover(cell, 4, 12)
    kernels = await editor.request("irscope/kernelsAt", uri=cell, line=4)
    assert [one.name for one in kernels.kernels] == ["k0"]
    assert [(origin.uri, origin.line) for origin in kernels.kernels[0].origins] == [(cell, 4)]
    regions = await editor.request("irscope/regions", uri=cell)
    assert [(r.kind, r.line, r.endLine) for r in regions.regions] == [
        ("compiled", 2, 6), ("kernel", 4, 4), ("broken", 5, 5),
    ]  # fmt: skip
    everywhere = types.Range(types.Position(0, 0), types.Position(99, 0))
    hints = await editor.client.text_document_inlay_hint_async(
        types.InlayHintParams(types.TextDocumentIdentifier(cell), everywhere)
    )
    assert [(h.position.line, h.label) for h in hints or ()] == [(4, "f32[4, 8]"), (6, "f32[4, 8]"), (3, ": f32[4, 8]")]
    state = editor.file_state(cell)
    assert state.state == "current" and state.entry is None


async def test_findings_stay_with_their_cell(start_editor: StartEditor, play: Play, path: Path, tmp_path: Path) -> None:
    play(act(path))
    editor = await start_editor(playing=True)
    notebook = Notebook(editor, path)
    cell = notebook.uris[1]
    await editor.until(lambda: editor.codes(cell) == ["GB0059"])
    await editor.until_ended()
    notebook.insert(0, "import math")
    notebook.edit(2, 0, 0, 0, "# one\n# two\n")
    await editor.until(lambda: bool(editor.diagnostics(cell)) and editor.diagnostics(cell)[0].range.start.line == 7)
    assert editor.file_state(cell).state == "stale"
    assert await editor.lenses(cell) == [
        (4, f"{each} · before your edit") for each in ("1 cause", "1 graph · 1 break · 500 ms")
    ]
    notebook.save()
    await editor.until_ended(2)
    run = asked(tmp_path)[-1]
    assert run["cells"] == [cell_name(str(path), number) for number in (4, 1, 2, 3)], "in the order of the notebook"
    assert run["texts"][cell_name(str(path), 2)].startswith("# one\n# two\n# the model\n")
    notebook.close()
    await editor.until(lambda: editor.codes(cell) == [])


async def test_cells_are_moved_and_deleted(start_editor: StartEditor, play: Play, path: Path, tmp_path: Path) -> None:
    first = act(path)
    play(first, first, {"findings": []})
    editor = await start_editor(playing=True)
    notebook = Notebook(editor, path)
    cell = notebook.uris[1]
    await editor.until(lambda: editor.codes(cell) == ["GB0059"])
    await editor.until_ended()
    notebook.swap(1)
    await editor.until(lambda: editor.file_state(cell).state == "stale")
    assert editor.codes(cell) == ["GB0059"], "it goes where its cell goes"
    notebook.save()
    await editor.until_ended(2)
    assert asked(tmp_path)[-1]["cells"] == [cell_name(str(path), number) for number in (1, 3, 2)]
    notebook.delete(2)
    await editor.until(lambda: editor.codes(cell) == [])
    notebook.save()
    await editor.until_ended(3)
    assert asked(tmp_path)[-1]["cells"] == [cell_name(str(path), number) for number in (1, 3)]
    assert not any(editor.diagnostics(uri) for uri in (*notebook.uris, notebook.uri))
    result = await editor.request("irscope/kernelsAt", uri=notebook.uris[1], line=0)
    assert result.kernels == [] and result.reason


async def test_a_notebook_is_opened_again(start_editor: StartEditor, play: Play, path: Path, tmp_path: Path) -> None:
    """Nothing is left of what was closed: neither the numbers of cells nor those that are gone."""
    play(act(path), {"findings": []})
    editor = await start_editor(playing=True)
    notebook = Notebook(editor, path)
    first, second, third = notebook.uris
    await editor.until_ended()
    notebook.delete(0)
    notebook.close()
    await editor.until(lambda: editor.codes(second) == [])
    again = Notebook(editor, path, CELLS[1:])
    assert again.uris == [first, second], "the editor gives the same names again"
    again.save()
    await editor.until_ended(2)
    run = asked(tmp_path)[-1]
    assert run["cells"] == [cell_name(str(path), number) for number in (1, 2)]
    assert set(run["overlays"]) == {str(path), *run["cells"]}
    assert (await editor.request("irscope/kernelsAt", uri=third, line=0)).kernels == []


async def test_a_stored_run_in_which_the_cells_had_other_numbers(
    start_editor: StartEditor, play: Play, path: Path, tmp_path: Path
) -> None:
    """A cell that came late has a high number until the notebook is closed: what was found in it belongs to no other."""
    late, first = ({"findings": [to_json(finding(cell_name(str(path), number), 6, 4, 15))]} for number in (5, 1))
    play(act(path), late, first)
    editor = await start_editor(playing=True)
    notebook = Notebook(editor, path, (*CELLS, CELLS[1]))
    await editor.until_ended()
    notebook.delete(3)
    notebook.insert(0, CELLS[1])
    notebook.insert(4, CELLS[1])
    notebook.save()
    await editor.until_ended(2)
    assert asked(tmp_path)[-1]["cells"] == [cell_name(str(path), number) for number in (5, 1, 2, 3, 6)]
    notebook.close()
    await editor.until(lambda: not any(editor.codes(uri) for uri in notebook.uris))
    again = Notebook(editor, path, (CELLS[1], *CELLS, CELLS[1]))
    await editor.until(lambda: any(editor.codes(uri) for uri in again.uris))
    assert [editor.codes(uri) for uri in again.uris] == [["GB0059"], [], [], [], []]


async def test_a_notebook_without_torch_runs_nothing(
    start_editor: StartEditor, play: Play, path: Path, tmp_path: Path
) -> None:
    play({})
    editor = await start_editor(playing=True)
    notebook = Notebook(editor, path, ("x = 1", "print(x)"))
    notebook.save()
    assert await editor.lenses(notebook.uris[0]) == []
    result = await editor.request("irscope/run", uri=notebook.uris[1], lane="fast")
    assert result.outcome == "completed", "unless it is asked for"
    assert len(asked(tmp_path)) == 1


@SHARED
@pytest.mark.worker
async def test_a_real_run_of_what_the_cells_say_now(at_work: AtWork, path: Path) -> None:
    """Nothing of it is on the disk: the cells are as they are in the editor."""
    path.write_text("{}")
    editor = await at_work()
    last = "x = await __import__('asyncio').sleep(0, 3)\n!ls\ndisplay(f(torch.ones(x, 8)).shape)\nf(torch.ones(5, 8))"
    notebook = Notebook(editor, path, (*CELLS, last))
    await editor.until_ended()
    cell = notebook.uris[1]
    await editor.until(lambda: "GB0059" in editor.codes(cell))
    diagnostic = next(each for each in editor.diagnostics(cell) if each.code == "GB0059")
    assert diagnostic.range == types.Range(types.Position(5, 4), types.Position(5, 15))
    assert {each.location.uri for each in diagnostic.related_information or ()} <= {*notebook.uris[2:]}
    assert "recompile-size" in editor.codes(cell)
    printed = "".join(told.text for told in editor.told["irscope/output"])
    assert "torch.Size([3, 8])" in printed
    assert path.read_text() == "{}"
    notebook.close()
