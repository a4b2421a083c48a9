"""What the last run changed, in one line: in the state of a file, and only where it is true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from irscope.protocol import Lane, Outcome, OutcomeKind
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from lsp_editor import Editor, StartEditor
from made import SCRIPT, compile_of, stage
from made import act_at as act

Play = Callable[..., Path]


async def after_saves(editor: Editor, script: Path, saves: int) -> str:
    """Opens the script and saves it so often; gives its address when the last run has ended."""
    uri = editor.open(script)
    await editor.until_ended(1)
    for number in range(saves):
        editor.save(uri)
        await editor.until_ended(number + 2)
    return uri


def changed(editor: Editor, uri: str) -> str | None:
    state = editor.file_state(uri)
    return state.changed.text if state is not None and state.changed is not None else None


async def test_a_save_tells_what_it_fixed_and_what_is_new(start_editor: StartEditor, play: Play, script: Path) -> None:
    same = [act(script, 5, 6, compiled=compiled) for compiled in (0.12, 0.6, 2.0)]
    play(act(script, 5, 6, 7), act(script, 5, compiled=0.1), *same)
    editor = await start_editor(playing=True)
    uri = await after_saves(editor, script, 1)
    await editor.until(lambda: changed(editor, uri) == "2 breaks fixed · −400 ms")
    state = editor.file_state(uri).changed
    shown = await editor.request("irscope/changes", run=state.run)
    assert shown.since.run == state.since and len(shown.findingsGone) == 2, "the panel shows the same two runs"
    editor.save(uri)
    await editor.until(lambda: changed(editor, uri) == "1 new break")  # 20 ms are what two runs differ by anyway
    editor.save(uri)
    await editor.until_ended(4)
    await editor.until(lambda: changed(editor, uri) is None)  # time alone, and not much of it
    editor.save(uri)
    await editor.until(lambda: changed(editor, uri) == "+1.4 s")


async def test_what_a_run_that_failed_did_not_come_to_is_not_fixed(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, 5, 6), act(script, 5, outcome="script-error"), act(script, 5))
    editor = await start_editor(playing=True)
    uri = await after_saves(editor, script, 1)
    await editor.until(lambda: editor.codes(uri) == ["GB0005"])
    assert not any(told.changed for told in editor.told["irscope/fileState"])
    failed = editor.told["irscope/runsChanged"][-1].run
    shown = await editor.request("irscope/changes", run=failed)
    assert shown.summary.startswith("1 finding not seen") and "did not reach" in shown.reason
    editor.save(uri)
    await editor.until(lambda: changed(editor, uri) == "1 break fixed")  # than the run that came to its end


@pytest.mark.parametrize(("severity", "told"), [({}, "1 new break"), ({"graph-break": "off"}, None)])
async def test_what_the_user_does_not_want_to_see_is_not_told(
    start_editor: StartEditor, play: Play, script: Path, severity: dict[str, str], told: str | None
) -> None:
    """One of two new breaks has an ignore comment on its line; a severity of *off* hides both."""
    script.write_text(SCRIPT.replace('print("hi")', 'print("hi")  # irscope: ignore'))
    play(act(script), act(script, 5, 6), act(script, compiled=5))
    editor = await start_editor(playing=True, settings={"severity": severity})
    uri = await after_saves(editor, script, 1)
    if told is not None:
        await editor.until(lambda: changed(editor, uri) == told)
    editor.save(uri)
    fixed = told and "1 break fixed"
    await editor.until(lambda: changed(editor, uri) == " · ".join(filter(None, [fixed, "+4.5 s"])))
    said = [one.changed.text for one in editor.told["irscope/fileState"] if one.changed]
    assert told is not None or not any("break" in text for text in said)


async def test_what_a_request_has_read_from_the_store_is_not_run_again(
    start_editor: StartEditor, play: Play, script: Path, store_path: str, tmp_path: Path
) -> None:
    """As `npm start` does: it asks for the stages while the file is being opened."""
    play(act(script))
    with Store(store_path) as store:
        run = store.create_run(str(script), [], Lane.DEEP, digest_of(SCRIPT))
        store.put_compile(run, compile_of(str(script)))
        store.put_stage(run, "0/0", stage("0/0", "dynamo-graph"), "graph", 0.0)
        store.put_source(run, str(script), SCRIPT)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    editor = await start_editor(playing=True)
    found = await editor.request("irscope/stagesOf", uri=script.as_uri(), run=True)
    assert found.run == run
    uri = editor.open(script)
    await editor.until(lambda: editor.file_state(uri) is not None and editor.file_state(uri).state == "current")
    await asyncio.sleep(0.5)
    assert not (tmp_path / "play.json.asked").exists()
