"""What views of an older run say: the texts of its stages by a lens, the panels by ``irscope/age``."""

from __future__ import annotations

from pathlib import Path

from irscope.protocol import CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from irscope_server.base.stage_uris import uri_of_stage
from lsp_editor import StartEditor
from made import compile_of

STAGE = "0/0/output-code"


def add_run(path: str, script: Path, lane: Lane, *, ended: bool = True, pipeline: str = "inductor") -> str:
    with Store(path) as store:
        run = store.create_run(str(script), [], lane, "digest", pipeline=pipeline)
        store.put_compile(run, compile_of(str(script), outcome=CompileOutcome.COMPILED))
        store.put_stage(run, "0/0", StageRef(STAGE, "output-code", "python", 4), "code", 0.0)
        if ended:
            store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    return run


async def test_views_of_an_older_run_say_so(start_editor: StartEditor, store_path: str, tmp_path: Path) -> None:
    script, other = tmp_path / "a.py", tmp_path / "b.py"
    old = add_run(store_path, script, Lane.DEEP)
    editor = await start_editor()
    uri = uri_of_stage(old, STAGE, "python")
    assert await editor.lenses(uri) == []
    assert (await editor.request("irscope/age", run=old)).text == ""
    add_run(store_path, other, Lane.DEEP)
    add_run(store_path, script, Lane.FAST, ended=False)
    add_run(store_path, script, Lane.DEEP, pipeline="tvm")
    assert (await editor.request("irscope/age", run=old)).text == "", (
        "of another script or pipeline, or one that goes on"
    )

    new = add_run(store_path, script, Lane.FAST)
    with Store(store_path) as store:  # the clock was ahead when the older one was made
        store._db.execute("UPDATE runs SET started = started + 1e6 WHERE id = ?", (old,))
    [(line, title)] = await editor.lenses(uri)
    assert line == 0 and title.startswith("Older run: deep, ") and ". Newest: fast, " in title
    assert (await editor.request("irscope/age", run=old)).text == title
    assert await editor.lenses(uri_of_stage(new, STAGE, "python")) == []
    assert (await editor.request("irscope/age", run="gone")).text == ""
    assert await editor.lenses(uri_of_stage("gone", STAGE, "python")) == []
