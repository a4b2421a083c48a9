"""One batch of another length compiles three functions again: the editor shows it as one, with its fix at the call."""

from __future__ import annotations

from pathlib import Path

from lsp_editor import SHARED, AtWork, Editor, edits_in
from lsprotocol import types

MODEL = """\
import torch


class Chunk(torch.nn.Module):
    def forward(self, part):
        torch._dynamo.graph_break()
        return part * 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.chunk = Chunk()

    def forward(self, batch):
        return self.chunk(batch.sin()) + batch
"""
TRAIN = """\
import torch
from model import Model

model = Model()
step = torch.compile(
    model,
    backend="eager",  # é
)
for length in (16, 16, 24):
    batch = torch.ones(length, 4)
    step(batch)
"""
TITLE = "Compile with `dynamic=True` (recompile-size)"
CALL = TRAIN.split("\n").index("    step(batch)")


async def actions(editor: Editor, uri: str, line: int) -> list[types.CodeAction]:
    at = types.Range(types.Position(line, 6), types.Position(line, 6))
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), at, types.CodeActionContext([]))
    found = await editor.client.text_document_code_action_async(params) or []
    return [each for each in found if isinstance(each, types.CodeAction)]


def recompilations(editor: Editor, uri: str) -> list[types.Diagnostic]:
    return [each for each in editor.diagnostics(uri) if each.code == "recompile-size"]


@SHARED
async def test_one_diagnostic_and_its_fix_at_the_call(at_work: AtWork, tmp_path: Path) -> None:
    paths = [tmp_path / "model.py", tmp_path / "train.py"]
    for path, text in zip(paths, (MODEL, TRAIN), strict=True):
        path.write_text(text, encoding="utf-8")
    editor = await at_work({"run": {"onSave": "off", "cwd": str(tmp_path)}})
    model, train = map(editor.open, paths)
    first = await editor.request("irscope/run", uri=train, lane="fast")
    report = await editor.request("irscope/findings", run=first.run)
    (group,) = [group for group in report.groups if group.code == "recompile-size"]
    assert len(group.places) == 3, "each of them is in the report"

    (parent,) = recompilations(editor, model)
    assert parent.range.start.line == MODEL.split("\n").index("    def forward(self, batch):")
    assert "also recompiled `Chunk.forward, after line 6` and `Model.forward, after line 16`." in parent.message
    assert group.places[0].line == parent.range.start.line, "the cause comes first, whatever the others cost"
    related = [(each.location.uri, each.location.range.start.line) for each in parent.related_information or []]
    returns = [i for i, line in enumerate(MODEL.split("\n")) if line.startswith("        return")]
    assert related == [(train, CALL), *((model, line) for line in returns)]
    assert not recompilations(editor, train)

    (fix,) = [each for each in await actions(editor, train, CALL) if each.title == TITLE]
    assert next(each.title for each in await actions(editor, model, parent.range.start.line)) == TITLE
    assert not [each for each in await actions(editor, train, CALL - 1) if each.title == TITLE]
    assert not [each for line in returns for each in await actions(editor, model, line) if "recompile" in each.title]
    assert list(edits_in(fix)) == [train]
    (edit,) = edits_in(fix)[train]
    row, column = edit.range.start.line, edit.range.start.character
    lines = TRAIN.split("\n")
    lines[row] = lines[row][:column] + edit.new_text + lines[row][column:]
    assert lines[row] == '    backend="eager", dynamic=True,  # é'

    editor.change(train, "\n".join(lines))
    assert not [each for each in await actions(editor, train, CALL) if each.title == TITLE], "that line has changed"
    paths[1].write_text("\n".join(lines), encoding="utf-8")
    await editor.request("irscope/run", uri=train, lane="fast")
    await editor.until(lambda: recompilations(editor, model) == [])
    assert [each.code for each in editor.diagnostics(model)] == ["GB0025"]
