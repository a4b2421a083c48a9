"""A workspace that is reached by a symbolic link: one file is one file, whatever the run and the editor call it."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.protocol import CompileOutcome, Lane, Outcome, OutcomeKind
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from lsp_editor import StartEditor
from made import SCRIPT, compile_of, finding


@pytest.mark.parametrize(("ran", "edited"), [("real", "link"), ("link", "real")])
async def test_findings_are_where_the_editor_has_the_file(
    ran: str, edited: str, start_editor: StartEditor, store_path: str, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("a.py", "b.py"):
        (tmp_path / "real" / name).write_text(SCRIPT)
    script, helper = (str(tmp_path / ran / name) for name in ("a.py", "b.py"))
    with Store(store_path) as store:
        run = store.create_run(script, [], Lane.FAST, digest_of(SCRIPT))
        store.put_compile(run, compile_of(script, outcome=CompileOutcome.COMPILED))
        for file in (script, helper):
            store.put_source(run, file, SCRIPT)
            store.put_finding(run, finding(file, 6, 4, 15))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    editor = await start_editor()
    uri = editor.open(tmp_path / edited / "a.py")
    await editor.until(lambda: bool(editor.codes(uri)))
    assert [one.range.start.line for one in editor.diagnostics(uri)] == [5]
    assert editor.codes((tmp_path / ran / "a.py").as_uri()) == []
    closed = (tmp_path / "real" / "b.py").as_uri()
    await editor.until(lambda: bool(editor.codes(closed)))
    other = editor.open(tmp_path / edited / "b.py")
    await editor.until(lambda: bool(editor.codes(other)) and (other == closed or not editor.codes(closed)))
    subject = await editor.request("irscope/subjectOf", uri=uri, line=4)
    assert subject.run.run == run
