"""Ignore comments, severities and a baseline, wherever findings are shown; runs are played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.findings.control import write_baseline
from irscope.protocol import to_json
from lsp_editor import Editor, StartEditor, data_of
from lsprotocol import types
from made import SCRIPT, compile_of, finding

Play = Callable[..., Path]
IGNORED = SCRIPT.replace('print("hi")', 'print("hi")  # irscope: ignore[GB0059] while debugging')


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def act(script: Path, *findings: Any, **more: Any) -> dict[str, Any]:
    return {
        "findings": [to_json(one) for one in findings],
        "compiles": [[to_json(compile_of(str(script))), []]],
        **more,
    }


def set_configuration(editor: Editor, **settings: Any) -> None:
    editor.client.set_configuration({"irscope": settings})
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))


async def test_a_comment_hides_everywhere(start_editor: StartEditor, play: Play, script: Path) -> None:
    """The comment is in the open buffer only; it hides in diagnostics, hover and lens, and while the run goes on."""
    play(act(script, finding(str(script), 6, 4, 15), finding(str(script), 5, 4, 5, code="GB0001"), seconds=1))
    editor = await start_editor(playing=True)
    uri = editor.open(script, IGNORED)
    await editor.until(lambda: editor.codes(uri) != [])
    assert editor.codes(uri) == ["GB0001"] and editor.state == "running"
    await editor.until_ended()
    assert editor.codes(uri) == ["GB0001"]
    assert await editor.hover(uri, 5, 6) == ""
    assert [title for _, title in await editor.lenses(uri)] == ["1 cause · see line 5", "1 graph · 1 break · 500 ms"]


async def test_a_comment_that_hides_nothing(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    script.write_text(IGNORED)
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["unused-ignore"])
    (found,) = editor.diagnostics(uri)
    assert (
        list(found.tags or ()) == [types.DiagnosticTag.Unnecessary] and found.severity == types.DiagnosticSeverity.Hint
    )
    assert found.range.start == types.Position(5, IGNORED.split("\n")[5].index("#"))
    assert data_of(found)["kind"] == data_of(found)["code"] == "unused-ignore"
    editor.change(uri, SCRIPT)
    await editor.until(lambda: editor.codes(uri) == [])


async def test_severities_apply_at_once(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, finding(str(script), 6, 4, 15)))
    editor = await start_editor(playing=True, settings={"severity": {"graph-break": "error"}})
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert editor.diagnostics(uri)[0].severity == types.DiagnosticSeverity.Error
    await editor.until_ended()
    set_configuration(editor, severity={"graph-break": "error", "GB0059": "off"})
    await editor.until(lambda: editor.codes(uri) == [])
    assert await editor.hover(uri, 5, 6) == ""
    assert [title for _, title in await editor.lenses(uri)] == ["no breaks · next: profile it", "1 graph · 500 ms"]
    document = types.TextDocumentIdentifier(uri)
    found = await editor.client.text_document_code_lens_async(types.CodeLensParams(document)) or []
    given: list[Any] = [lens.command.arguments[0] for lens in found if lens.command and lens.command.arguments]
    assert [one.get("next") for one in given] == ["profile", None], "a click on it profiles"
    set_configuration(editor)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert editor.diagnostics(uri)[0].severity == types.DiagnosticSeverity.Warning
    assert len((await editor.request("irscope/runs")).runs) == 1, "no new run"


async def test_only_what_is_not_in_the_baseline(start_editor: StartEditor, play: Play, script: Path) -> None:
    known = finding(str(script), 6, 4, 15)
    write_baseline(str(script.parent / "baseline.json"), [known])
    play(act(script, known, finding(str(script), 7, 4, 5)))
    editor = await start_editor(playing=True, settings={"baseline": "baseline.json"})
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: [found.range.start.line for found in editor.diagnostics(uri)] == [6])
    set_configuration(editor, baseline="nowhere.json")
    await editor.until(lambda: len(editor.codes(uri)) == 2)
    assert ["nowhere.json" in shown.message for shown in editor.client.messages] == [True]
