"""Sessions with the real server process: what an editor sees when files open, change, are saved and close.

Runs are played (playing_server.py), so nothing here needs torch; test_worker.py has the same with the real one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import CompileOutcome, Lane, Outcome, OutcomeKind, to_json
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from lsp_editor import StartEditor
from lsprotocol import types
from made import SCRIPT, act, compile_of, finding, related, stage

Play = Callable[..., Path]


VERDICT = "1 cause · see line 6"

NOT_COMPILED = """\
import torch

@torch.compile
def f(x):
    for _ in range(2):
        print("hi")
    return x

f(torch.ones(4, 8))
"""


async def test_a_function_that_is_not_compiled_leads_to_the_break(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    script.write_text(NOT_COMPILED)
    file = str(script)
    compile = compile_of(file, outcome=CompileOutcome.SKIPPED, graph_ops=0)
    cause = related(file, 6, 8, 19, "this graph break is the cause")
    why = finding(file, 4, 4, 5, kind="skipped-frame", code="skipped-by-break", related=(cause,))
    findings = [to_json(finding(file, 6, 8, 19)), to_json(why)]
    play({"findings": findings, "compiles": [[to_json(compile), []]], "kernels": []})
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: len(editor.codes(uri)) == 2)
    found = editor.diagnostics(uri)
    assert [(one.code, one.range.start.line) for one in found] == [("skipped-by-break", 3), ("GB0059", 5)]
    assert found[0].related_information and found[0].related_information[0].location.range.start.line == 5
    verdict, lens = (
        await editor.client.text_document_code_lens_async(types.CodeLensParams(types.TextDocumentIdentifier(uri))) or []
    )
    assert verdict.command and verdict.command.title == "2 causes · see first: line 6"
    assert verdict.command.tooltip == editor.file_state(uri).text, "the same words as in the status item"
    assert lens.command and lens.command.title == "runs as plain Python: break at line 6 in f"
    assert lens.command.command == "irscope.showPlace"
    assert list(lens.command.arguments or ()) == [{"uri": uri, "line": 5}]


async def test_capabilities(start_editor: StartEditor) -> None:
    editor = await start_editor(pull=True)
    assert editor.result
    capabilities = editor.result.capabilities
    assert capabilities.workspace and capabilities.workspace.text_document_content == types.TextDocumentContentOptions(
        ("irscope",)
    )
    provider = capabilities.diagnostic_provider
    assert isinstance(provider, types.DiagnosticOptions)
    assert provider.inter_file_dependencies and provider.identifier == "irscope"
    assert capabilities.execute_command_provider
    assert set(capabilities.execute_command_provider.commands) == {
        "irscope.server.run",
        "irscope.server.cancel",
        "irscope.server.checkWithoutCompile",
    }
    sync = capabilities.text_document_sync
    assert isinstance(sync, types.TextDocumentSyncOptions)
    assert sync.open_close and sync.change == types.TextDocumentSyncKind.Full
    assert sync.save, "clients send didSave only to a server that asks for it"


async def test_open_runs_and_shows(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    (diagnostic,) = editor.diagnostics(uri)
    assert diagnostic.range == types.Range(types.Position(5, 4), types.Position(5, 15))
    assert diagnostic.source == "irscope" and diagnostic.severity == types.DiagnosticSeverity.Warning
    assert diagnostic.code_description == types.CodeDescription("https://example.org/gb0059.html")
    assert diagnostic.related_information
    assert diagnostic.related_information[0].location == types.Location(
        uri, types.Range(types.Position(8, 0), types.Position(8, 19))
    )
    run = editor.told["irscope/runsChanged"][-1].run
    assert diagnostic.data == {"run": run, "kind": "graph-break", "code": "GB0059"} and diagnostic.tags is None
    assert await editor.lenses(uri) == [(2, VERDICT), (2, "1 graph · 1 break · 500 ms")]
    assert "**Graph break** [GB0059]" in await editor.hover(uri, 5, 6)
    assert "| `0/0` | `f` | compiled |" in await editor.hover(uri, 3, 4)
    assert await editor.hover(uri, 0, 0) == ""
    assert editor.state == "ready" and editor.lens_refreshes >= 2


@pytest.mark.parametrize("link", ["command:workbench.action.quit", "javascript:alert(1)", "file:///etc/passwd"])
async def test_a_finding_leads_to_no_command_and_turns_no_text(
    link: str, start_editor: StartEditor, play: Play, script: Path
) -> None:
    evil = finding(str(script), 6, 4, 15, message="called \u202eevil\x1b[31m", link=link)
    play({**act(script), "findings": [to_json(evil)]})
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    (diagnostic,) = editor.diagnostics(uri)
    assert diagnostic.code_description is None
    assert diagnostic.message == r"called \u202eevil\u001b[31m"
    hover = await editor.hover(uri, 5, 6)
    assert link not in hover and r"called \\u202eevil\\u001b\[31m" in hover


async def test_findings_come_while_the_script_still_runs(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, seconds=60))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert editor.state == "running"
    assert await editor.lenses(uri) == [(2, "running…")]


async def test_symbols_are_said_while_the_script_still_runs(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    """Also of a finding that came before its compile had ended."""
    known = {"symbols": [{"symbol": "s7", "hint": "5", "source": "L['x'].size()[0]", "narrowed": [2, None]}]}
    compile = [to_json(compile_of(str(script))), [[to_json(stage("0/0", "symbols")), "", known]]]
    named = finding(str(script), 6, 4, 15, message="`s7 > 3` is not known.")
    play({"findings": [to_json(named)], "compiles": [compile], "seconds": 60})
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    said = "`s7 > 3` is not known.\ns7 is L['x'].size()[0]: 5 in this compile, 2 to ∞"
    await editor.until(lambda: [diagnostic.message for diagnostic in editor.diagnostics(uri)] == [said])
    assert editor.state == "running"


async def test_a_client_that_pulls_is_not_pushed(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, pull=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: editor.client.diagnostic_refresh_count >= 1)
    params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
    report = await editor.client.text_document_diagnostic_async(params)
    assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
    assert [item.code for item in report.items] == ["GB0059"]
    params.previous_result_id = report.result_id
    again = await editor.client.text_document_diagnostic_async(params)
    assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
    editor.change(uri, SCRIPT.replace('print("hi")', "pass"))
    third = await editor.client.text_document_diagnostic_async(params)
    assert isinstance(third, types.RelatedFullDocumentDiagnosticReport) and list(third.items) == []
    assert editor.client.diagnostics == {}


@pytest.mark.parametrize("like", ["neovim@v0.11.0", "neovim@v0.6.1", "emacs"])
async def test_other_editors_as_they_are(start_editor: StartEditor, play: Play, script: Path, like: str) -> None:
    """With the capabilities that these editors really send, pull or push."""
    play(act(script))
    editor = await start_editor(playing=True, like=like, pull=None)
    uri = editor.open(script)
    await editor.until_ended()
    if editor.pulls:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
        report = await editor.client.text_document_diagnostic_async(params)
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        assert [item.code for item in report.items] == ["GB0059"] and editor.diagnostics(uri) == []
    else:
        await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert await editor.lenses(uri) == [(2, VERDICT), (2, "1 graph · 1 break · 500 ms")]


async def test_a_pulling_client_that_cannot_be_refreshed_is_pushed(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    """Such as Neovim 0.11: it asks when a file is opened and changed, before the run has found anything."""

    def no_refresh(capabilities: types.ClientCapabilities) -> None:
        assert capabilities.workspace
        capabilities.workspace.diagnostics = None

    play(act(script, seconds=0.5))
    editor = await start_editor(playing=True, pull=True, change=no_refresh)
    assert editor.result and editor.result.capabilities.diagnostic_provider is None
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    editor.change(uri, SCRIPT + "# an edit\n")
    editor.save(uri)
    await editor.until_ended(2)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])


async def test_findings_in_a_file_that_is_not_open(start_editor: StartEditor, play: Play, script: Path) -> None:
    module = script.parent / "module.py"
    module.write_text("def g():\n    print('😀', x)\n")
    play(act(script, findings=[to_json(finding(str(module), 2, 15, 16))]))
    editor = await start_editor(playing=True)
    editor.open(script)
    await editor.until(lambda: editor.codes(module.as_uri()) == ["GB0059"])
    (diagnostic,) = editor.diagnostics(module.as_uri())
    assert diagnostic.range == types.Range(types.Position(1, 16), types.Position(1, 17))  # the face is two UTF-16 units

    pulling = await start_editor(playing=True, pull=True)
    params = types.WorkspaceDiagnosticParams([])
    empty = await pulling.client.workspace_diagnostic_async(params)
    assert list(empty.items) == []
    waiting = asyncio.ensure_future(pulling.client.workspace_diagnostic_async(params))
    pulling.open(script)
    (item,) = (await asyncio.wait_for(waiting, 10)).items
    assert item.uri == module.as_uri() and isinstance(item, types.WorkspaceFullDocumentDiagnosticReport)
    assert [found.code for found in item.items] == ["GB0059"]


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 25), ("utf-16", 23), ("utf-32", 22)])
async def test_columns_in_the_encoding_that_was_agreed_on(
    start_editor: StartEditor, play: Play, script: Path, encoding: str, column: int
) -> None:
    def prefer(capabilities: types.ClientCapabilities) -> None:
        capabilities.general = types.GeneralClientCapabilities(
            position_encodings=[types.PositionEncodingKind(encoding)]
        )

    text = SCRIPT.replace('print("hi")', 's = "😀"; print(s, x)')
    script.write_text(text)
    start = text.split("\n")[5].index("x)")
    play(act(script, findings=[to_json(finding(str(script), 6, start, start + 1))]))
    editor = await start_editor(playing=True, change=prefer)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert editor.diagnostics(uri)[0].range.start.character == column
    assert "Graph break" in await editor.hover(uri, 5, column)
    assert "Graph break" not in await editor.hover(uri, 5, column - 2)


async def test_edits_move_what_was_found(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    editor.change(uri, "# one\n# two\n" + SCRIPT)
    await editor.until(lambda: editor.diagnostics(uri)[0].range.start.line == 7)
    assert "Graph break" in await editor.hover(uri, 7, 5)
    assert [line for line, _ in await editor.lenses(uri)] == [4, 4]


async def test_a_save_runs_again_and_replaces(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script), act(script, findings=[]))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    script.write_text(SCRIPT + "# fixed\n")
    editor.change(uri, SCRIPT + "# fixed\n")
    editor.save(uri)
    await editor.until_ended(2)
    await editor.until(lambda: editor.codes(uri) == [])


async def test_a_newer_save_cancels_the_older_run(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, seconds=60, findings=[]), act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: len(editor.told.get("irscope/runsChanged", [])) == 1)
    first = editor.told["irscope/runsChanged"][0].run
    editor.change(uri, SCRIPT + "# edited\n")
    editor.save(uri)
    await editor.until_ended(2)
    assert await editor.lenses(uri) == [(2, VERDICT), (2, "1 graph · 1 break · 500 ms")]
    runs = (await editor.request("irscope/runs", uri=uri)).runs
    assert {run.run: run.outcome for run in runs}[first] == "cancelled" and len(runs) == 2


async def test_a_save_without_an_edit_leaves_the_run_of_this_text_alone(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, seconds=60))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.state == "running")
    editor.save(uri)
    await asyncio.sleep(0.5)  # a save that runs cancels what runs
    assert len((await editor.request("irscope/runs")).runs) == 1 and editor.state == "running"


async def test_a_save_without_an_edit_runs_again(start_editor: StartEditor, play: Play, script: Path) -> None:
    """A file that the script imports may have changed."""
    play(act(script))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    editor.save(uri)
    await editor.until_ended(2)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    published = -1
    while published != (published := len(editor.published(uri))):
        await asyncio.sleep(0.5)  # longer than between two publications
    other = script.parent / "other.py"
    other.write_text("x = 1\n")
    editor.open(other)
    await asyncio.sleep(0.2)
    assert len(editor.published(uri)) == published, "nothing was new"


async def test_the_unsaved_text_is_what_runs(
    start_editor: StartEditor, play: Play, script: Path, store_path: str
) -> None:
    play(act(script))
    editor = await start_editor(playing=True)
    text = SCRIPT + "# not saved\n"
    editor.open(script, text)
    await editor.until_ended()
    with Store(store_path) as store:
        assert store.source_of(store.find_run()) == digest_of(text)


async def test_what_was_run_before_is_shown_and_not_run_again(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script))
    first = await start_editor(playing=True)
    first.open(script)
    await first.until_ended()
    second = await start_editor(playing=True)
    uri = second.open(script)
    await second.until(lambda: second.codes(uri) == ["GB0059"])
    assert await second.lenses(uri) == [(2, VERDICT), (2, "1 graph · 1 break · 500 ms")]
    await asyncio.sleep(0.3)
    assert len((await second.request("irscope/runs")).runs) == 1
    second.close_document(uri)
    await second.until(lambda: second.codes(uri) == [])
    second.open(script, SCRIPT + "# another text\n")
    await second.until_ended()
    runs = (await second.request("irscope/runs")).runs
    assert len(runs) == 2  # one of the first editor, one of the other text


@pytest.mark.parametrize(
    ("text", "settings", "options"),
    [
        ("import re\nre.compile('x')\n", {}, {}),
        (SCRIPT, {"run": {"onSave": "off"}}, {}),
        (SCRIPT, {}, {"trusted": False}),
    ],
)
async def test_what_is_not_run(
    start_editor: StartEditor, script: Path, text: str, settings: dict[str, Any], options: dict[str, Any]
) -> None:
    editor = await start_editor(playing=True, settings=settings, options=options)
    uri = editor.open(script, text)
    editor.save(uri)
    await asyncio.sleep(0.3)
    assert (await editor.request("irscope/runs")).runs == [] and editor.state != "running"


async def test_nothing_runs_before_the_workspace_is_trusted(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script))
    editor = await start_editor(playing=True, options={"trusted": False})
    uri = editor.open(script)
    result = await editor.request("irscope/run", uri=uri, lane="fast")
    assert result.run is None and "not trusted" in result.message
    assert "not trusted" in (await editor.request("irscope/kernelsAt", uri=uri, line=4, run=True)).reason
    assert editor.state == "stopped"
    editor.client.protocol.notify("irscope/trusted", {})
    await editor.until_ended()
    assert editor.state == "ready"


async def test_documents_that_are_no_files(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = "untitled:Untitled-1"
    editor.client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, SCRIPT))
    )
    assert await editor.lenses(uri) == [] and await editor.hover(uri, 3, 4) == ""
    assert "not a file" in (await editor.request("irscope/kernelsAt", uri=uri, line=1)).reason
    assert "not a file" in (await editor.request("irscope/run", uri=uri, lane="fast")).message


@pytest.mark.parametrize(
    ("outcome", "message", "code", "line", "state"),
    [
        ("script-error", "SyntaxError: invalid syntax ({script}:5)", "syntax-error", 4, "ready"),
        ("script-error", "ValueError: no ({script}:9)", "script-error", 8, "ready"),
        ("crashed", "The script's process was killed by SIGSEGV.", "crashed", 0, "crashed"),
        ("environment-error", "There is no torch.", "environment-error", 0, "refused"),
    ],
)
async def test_bad_endings_are_shown_where_they_belong(
    start_editor: StartEditor, play: Play, script: Path, outcome: str, message: str, code: str, line: int, state: str
) -> None:
    message = message.format(script=script)
    play({"outcome": outcome, "message": message, **({"place": [str(script), line + 1]} if line else {})})
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == [code])
    (diagnostic,) = editor.diagnostics(uri)
    assert diagnostic.message == message.split(f" ({script}")[0] and diagnostic.range.start.line == line
    await editor.until(lambda: editor.state == state)
    await editor.until(lambda: message in editor.log)
    editor.change(uri, SCRIPT + "#")
    editor.save(uri)
    await editor.until_ended(2)
    shown = [shown.message for shown in editor.client.messages]
    assert shown == ([message] if outcome == "environment-error" else [])  # once, though it ran twice


async def test_the_budget_is_named_but_is_no_finding(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, outcome="budget", message="Stopped after 60 s."))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    await editor.until(lambda: "Stopped after 60 s." in editor.log)
    await editor.until(lambda: "Stopped after 60 s." in editor.file_state(uri).text)


async def test_what_the_script_prints(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, prints=[["stdout", "a"], ["stdout", "b\n"], ["stderr", "c" * 200_000]]))
    editor = await start_editor(playing=True)
    editor.open(script)
    await editor.until_ended()
    printed = [(told.stream, told.text) for told in editor.told["irscope/output"]]
    assert "".join(text for stream, text in printed if stream == "stdout") == "ab\n"
    errors = "".join(text for stream, text in printed if stream == "stderr")
    assert errors == "c" * 200_000, "whole"


async def test_settings_are_read_anew(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}, "python": 7})
    await editor.until(lambda: "The setting irscope.python must be a string" in editor.log)
    uri = editor.open(script)
    editor.client.set_configuration({"irscope": {"run": {"onSave": "deep"}}})
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    editor.save(uri)
    await editor.until_ended()
    assert {run.lane for run in (await editor.request("irscope/runs")).runs} == {"deep"}


async def test_a_store_that_cannot_be_used_is_said_once(start_editor: StartEditor, play: Play, script: Path) -> None:
    broken = script.parent / "store.db"
    broken.write_text("this is no database, and long enough to be read as one " * 20)
    play(act(script))
    editor = await start_editor(playing=True, options={"storePath": str(broken)})
    uri = editor.open(script)
    await editor.until(lambda: len(editor.client.messages) == 1)
    assert str(broken) in editor.client.messages[0].message
    editor.save(uri)
    await editor.until(lambda: editor.codes(uri) == ["environment-error"])
    assert len(editor.client.messages) == 1
    assert await editor.lenses(uri) == []


async def test_a_store_filled_by_the_command_line(start_editor: StartEditor, script: Path, store_path: str) -> None:
    with Store(store_path) as store:
        run = store.create_run(str(script), (), Lane.DEEP, digest_of(SCRIPT))
        store.put_compile(run, compile_of(str(script)))
        store.put_finding(run, finding(str(script), 6, 4, 15))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert await editor.lenses(uri) == [(2, VERDICT), (2, "1 graph · 1 break · 500 ms")]
    item = (await editor.request("irscope/runs", uri=uri, limit=1)).runs[0]
    assert (item.run, item.lane, item.outcome, item.compiles) == (run, "deep", "completed", 1)


async def test_a_frame_that_recompiles_a_thousand_times(start_editor: StartEditor, play: Play, script: Path) -> None:
    """Each recompilation is a message; the client gets a few publications, not a thousand."""
    play(
        act(script, findings=[to_json(finding(str(script), 6, 4, 15, count=n, message=f"{n}")) for n in range(1, 1001)])
    )
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: [d.message for d in editor.diagnostics(uri)] == ["1000"])
    assert 1 <= len(editor.published(uri)) <= 100
