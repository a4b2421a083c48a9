"""Quick fixes through the real server process."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Edit, Fix, Position, Range, to_json
from lsp_editor import Editor, StartEditor, edits_in
from lsprotocol import types
from made import compile_of, finding, kernel
from test_session import Play

SOURCE = """\
import torch

@torch.compile
def f(é):
    n = é.sum().item()
    return é * n

f(torch.ones(4))
"""
AT = types.Range(types.Position(4, 10), types.Position(4, 10))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def act(script: Path) -> dict[str, Any]:
    def at(line: int, start: int, end: int, text: str) -> Edit:
        return Edit(Range(Position(line, start), Position(line, end)), text)

    fixes = (
        Fix("Keep it a tensor", "It is then a tensor.", (at(5, 8, 22, "é.sum()"),)),
        Fix("Let numbers in", "", (at(3, 0, 0, "import torch._dynamo\n"), at(5, 8, 8, "float("), at(5, 22, 22, ")"))),
    )
    found = finding(str(script), 5, 8, 22, code="GB0124", fixes=fixes)
    return {"findings": [to_json(found)], "compiles": [[to_json(compile_of(str(script))), []]]}


async def actions(editor: Editor, uri: str, **context: Any) -> list[types.CodeAction]:
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), AT, types.CodeActionContext([], **context))
    return [
        a for a in await editor.client.text_document_code_action_async(params) or [] if isinstance(a, types.CodeAction)
    ]


def applied(text: str, action: types.CodeAction, uri: str) -> str:
    lines = text.split("\n")
    edits = sorted(edits_in(action)[uri], key=lambda edit: (edit.range.start.line, edit.range.start.character))
    for edit in reversed(edits):
        start, end = edit.range.start, edit.range.end
        assert isinstance(edit, types.TextEdit) and start.line == end.line
        line = lines[start.line]
        lines[start.line] = line[: start.character] + edit.new_text + line[end.character :]
    return "\n".join(lines)


async def test_fixes_then_ignoring(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    first, second, ignore = await actions(editor, uri)
    assert [first.title, second.title] == ["Keep it a tensor (GB0124)", "Let numbers in (GB0124)"]
    assert (first.is_preferred, second.is_preferred) == (False, False), "only the first, and only without a caveat"
    assert first.diagnostics and first.diagnostics[0].code == "GB0124"
    assert applied(SOURCE, first, uri) == SOURCE.replace("é.sum().item()", "é.sum()")
    assert applied(SOURCE, second, uri) == SOURCE.replace("@torch", "import torch._dynamo\n@torch").replace(
        "é.sum().item()", "float(é.sum().item())"
    )
    assert applied(SOURCE, ignore, uri) == SOURCE.replace(".item()", ".item()  # irscope: ignore[GB0124]")


async def test_a_code_that_is_none_writes_no_line_of_its_own(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    found = finding(str(script), 5, 8, 22, code="GB1]\nimport os\n#")
    play({"findings": [to_json(found)], "compiles": [[to_json(compile_of(str(script))), []]]})
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    (ignore,) = await actions(editor, uri)
    assert ignore.title == "Ignore GB1] import os # on this line"
    assert applied(SOURCE, ignore, uri).count("\n") == SOURCE.count("\n")


async def test_fixes_move_with_their_lines_and_go_when_those_change(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    moved = SOURCE.replace("    n = ", "    # a new line\n    n = ")
    editor.change(uri, moved)
    params = types.Range(types.Position(5, 10), types.Position(5, 10))
    request = types.CodeActionParams(types.TextDocumentIdentifier(uri), params, types.CodeActionContext([]))
    found = await editor.client.text_document_code_action_async(request)
    assert found and isinstance(found[0], types.CodeAction)
    assert applied(moved, found[0], uri) == moved.replace("é.sum().item()", "é.sum()")
    editor.change(uri, SOURCE.replace("@torch.compile", "@torch.compile()"), 3)
    assert [action.title for action in await actions(editor, uri)] == [
        "Keep it a tensor (GB0124)",
        "Ignore GB0124 on this line",
    ]
    editor.change(uri, SOURCE.replace(".item()", ".item() + 1"), 4)
    assert [action.title for action in await actions(editor, uri)] == ["Ignore GB0124 on this line"]
    editor.change(uri, SOURCE.replace(".item()", ".tolist()"), 5)
    assert await actions(editor, uri) == []


async def test_only_quick_fixes(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    assert await actions(editor, uri, only=[types.CodeActionKind.Refactor]) == []
    assert len(await actions(editor, uri, only=[types.CodeActionKind.QuickFix])) == 3


async def kernel_actions(editor: Editor, uri: str) -> list[tuple[str, Any]]:
    """Title and command of the actions that are commands.

    lsprotocol takes a code action that has a command for a bare command, and its command for a text.
    """
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), AT, types.CodeActionContext([]))
    found = await editor.client.text_document_code_action_async(params) or []
    return [(action.title, ast.literal_eval(action.command)) for action in found if isinstance(action, types.Command)]


@pytest.mark.parametrize(("line", "offered"), [(5, True), (6, False)])
async def test_the_kernels_of_a_findings_lines(
    start_editor: StartEditor, play: Play, script: Path, line: int, offered: bool
) -> None:
    play({**act(script), "kernels": [to_json(kernel("k0", "0/0", (str(script), line)))]})
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    await editor.request("irscope/run", uri=uri, lane="deep")
    title = "Show Generated Kernel"
    command = {"title": title, "command": "irscope.showKernel", "arguments": [{"uri": uri, "line": 4}]}
    assert await kernel_actions(editor, uri) == ([(title, command)] if offered else [])
    assert len(await actions(editor, uri)) == 3
