"""The check of an error in compiled code, as an editor asks for it, with the real server and real runs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsp_editor import SHARED, AtWork, Editor, StartEditor
from lsprotocol import types
from support import Ran, run_forked

SCRIPT = """\
import torch
open("ran", "a").write("x")

@torch.compile
def looked_up(table, index):
    return torch.nn.functional.embedding(index, table)

looked_up(torch.ones(4, 3), torch.tensor([1, 7]))
"""
LINE = 5
TITLE = "Check Without Compile"


def write(folder: Path) -> Path:
    path = folder / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


async def checks(editor: Editor, uri: str) -> list[dict[str, Any]]:
    """The commands of the code actions; the test's client takes an action with a command for the command itself."""
    at = types.Range(types.Position(LINE, 12), types.Position(LINE, 12))
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), at, types.CodeActionContext([]))
    found = await editor.client.text_document_code_action_async(params) or []
    return [ast.literal_eval(str(one.command)) for one in found if one.title == TITLE]


async def failed(at_work: AtWork, script: Path) -> tuple[Editor, str]:
    """An editor in which the script has failed inside compiled code."""
    editor = await at_work({"run": {"onSave": "off", "cwd": str(script.parent)}})
    uri = editor.open(script)
    result = await editor.request("irscope/run", uri=uri, lane="fast")
    assert result.outcome == "script-error"
    await editor.until(lambda: editor.codes(uri) == ["IndexError"])
    return editor, uri


@SHARED
async def test_the_diagnostic_and_its_check(at_work: AtWork, tmp_path: Path) -> None:
    editor, uri = await failed(at_work, write(tmp_path))
    (diagnostic,) = editor.diagnostics(uri)
    assert diagnostic.severity is types.DiagnosticSeverity.Error
    assert diagnostic.range.start == types.Position(LINE, 11), "not the script error at the end of the stack"
    (command,) = await checks(editor, uri)
    assert command["command"] == "irscope.server.checkWithoutCompile"
    assert (tmp_path / "ran").read_text() == "x", "nothing runs twice unless it is asked for"
    execute = types.ExecuteCommandParams(command["command"], command["arguments"])
    answer: Any = await editor.client.workspace_execute_command_async(execute)
    assert answer["message"].startswith("It fails without compile, too: the fault is in the script (IndexError")
    assert (tmp_path / "ran").read_text() == "xx", "the run that failed is not repeated"
    await editor.until(lambda: "It fails without compile, too" in editor.diagnostics(uri)[0].message)
    assert await checks(editor, uri) == [], "it is known now"
    runs = (await editor.request("irscope/runs", uri=uri, limit=10)).runs
    assert [run.run for run in runs] == [answer["run"]], "the run of the check is not listed"
    report = await editor.request("irscope/findings", run=answer["run"])
    assert "It fails without compile, too" in str(report)


@SHARED
async def test_an_edited_text_is_run_first(at_work: AtWork, tmp_path: Path) -> None:
    editor, uri = await failed(at_work, write(tmp_path))
    editor.change(uri, SCRIPT.replace("    return", "    # another line\n    return"))
    answer = await editor.request("irscope/checkWithoutCompile", uri=uri)
    assert "It fails without compile, too" in answer.message
    assert (tmp_path / "ran").read_text() == "xxx"
    await editor.until(lambda: editor.diagnostics(uri)[0].range.start.line == LINE + 1)


# --- of a stored run, which nothing runs again -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("failed")
    return run_forked(write(folder), folder / "runs.db", cwd=str(folder))


async def shown(start_editor: StartEditor, ran: Ran, **options: Any) -> tuple[Editor, str]:
    """Another editor, later: it shows what the store has of the script."""
    given = {"storePath": ran.store, "run": {"onSave": "off"}, **options}
    editor = await start_editor(playing=True, options=given)
    uri = editor.open(Path(ran.report.script))
    await editor.until(lambda: editor.codes(uri) == ["IndexError"])
    return editor, uri


async def test_nothing_to_check(start_editor: StartEditor, ran: Ran, play: Callable[..., Path], tmp_path: Path) -> None:
    play({"outcome": "completed"})
    editor, _ = await shown(start_editor, ran)
    other = tmp_path / "other.py"
    other.write_text("import torch\ntorch.compile(lambda x: x + 1)(torch.ones(3))\n", encoding="utf-8")
    answer = await editor.request("irscope/checkWithoutCompile", uri=editor.open(other))
    assert answer.run is None and "nothing to check" in answer.message


async def test_nothing_runs_in_a_workspace_that_is_not_trusted(start_editor: StartEditor, ran: Ran) -> None:
    editor, uri = await shown(start_editor, ran)
    assert await checks(editor, uri)
    editor.client.protocol.notify("irscope/trusted", {"trusted": False})
    answer = await editor.request("irscope/checkWithoutCompile", uri=uri)
    assert answer.run is None and "not trusted" in answer.message
    assert await checks(editor, uri) == []
    assert Path(ran.report.script).with_name("ran").read_text() == "x"


async def test_vs_code_has_a_command_of_its_own(start_editor: StartEditor, ran: Ran) -> None:
    editor, uri = await shown(start_editor, ran, richHovers=True)
    (command,) = await checks(editor, uri)
    assert command["command"] == "irscope.checkWithoutCompile"
