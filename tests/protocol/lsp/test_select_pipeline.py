"""The setting `pipeline`: deep runs go through it, the fast lane stays Dynamo's, and a client can list all pipelines.

Runs are played (playing_server.py), so nothing here needs torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from irscope.pipelines.registry import pipelines
from lsp_editor import StartEditor
from made import act

Play = Callable[..., Path]
OFF = {"onSave": "off"}


def asked(play: Path) -> list[tuple[str, str]]:
    """Lane and pipeline of each run."""
    rows = map(json.loads, Path(f"{play}.asked").read_text().splitlines())
    return [(row["lane"], row["pipeline"]) for row in rows]


async def test_deep_runs_take_the_pipeline_of_the_setting_and_fast_runs_do_not(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    played = play(act(script))
    editor = await start_editor(playing=True, settings={"pipeline": "torchscript", "run": OFF})
    uri = editor.open(script)
    await editor.request("irscope/run", uri=uri, lane="fast")
    await editor.request("irscope/run", uri=uri, lane="deep")
    await editor.request("irscope/run", uri=uri, lane="deep", pipeline="export")
    assert asked(played) == [("fast", "inductor"), ("deep", "torchscript"), ("deep", "export")]


async def test_stages_are_those_of_the_pipeline(start_editor: StartEditor, play: Play, script: Path) -> None:
    played = play(act(script))
    editor = await start_editor(playing=True, settings={"run": OFF})
    uri = editor.open(script)
    usual = await editor.request("irscope/stagesOf", uri=uri, run=True)
    nothing = await editor.request("irscope/stagesOf", uri=uri, pipeline="torchscript")
    assert nothing.run is None and nothing.reason.startswith("This file has no deep run yet.")
    other = await editor.request("irscope/stagesOf", uri=uri, run=True, pipeline="torchscript")
    assert other.run != usual.run and asked(played) == [("deep", "inductor"), ("deep", "torchscript")]
    again = await editor.request("irscope/stagesOf", uri=uri, run=True)
    assert again.run == usual.run, "it is in the store, so it is not run again"
    assert len(asked(played)) == 2


async def test_graph_breaks_stay_when_another_pipeline_has_run(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script), {})
    editor = await start_editor(playing=True, settings={"pipeline": "torchscript"})
    uri = editor.open(script)
    await editor.until_ended(1)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    await editor.request("irscope/run", uri=uri, lane="deep")
    assert editor.codes(uri) == ["GB0059"], "TorchScript knows no graph breaks"
    assert not [title for _, title in await editor.lenses(uri) if "running" in title]


async def test_a_file_that_is_opened_again_shows_the_fast_run_of_the_store(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    played = play(act(script), {})
    editor = await start_editor(playing=True, settings={"pipeline": "torchscript"})
    uri = editor.open(script)
    await editor.until_ended(1)
    await editor.request("irscope/run", uri=uri, lane="deep")
    editor.close_document(uri)
    await editor.until(lambda: editor.codes(uri) == [])
    editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert len(asked(played)) == 2


async def test_the_newest_run_of_each_pipeline_is_listed_however_old_it_is(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": OFF})
    uri = editor.open(script)
    names = ["torchscript", "export", "export", "inductor"]
    ran = [(await editor.request("irscope/run", uri=uri, lane="deep", pipeline=name)).run for name in names]
    newest = (await editor.request("irscope/runs", limit=1)).runs
    assert [run.run for run in newest] == [ran[3]]
    each = (await editor.request("irscope/runs", limit=1, eachPipeline=True)).runs
    assert [(run.run, run.pipeline) for run in each] == [
        (ran[3], "inductor"),
        (ran[2], "export"),
        (ran[0], "torchscript"),
    ]


MISSING = """\
from irscope.pipelines.base import Package, Pipeline

PIPELINE = Pipeline("made-up", "A made-up pipeline", (), needs=(Package("no_such_module", "no-such-package>=2"),))
"""
TRIED = """\
from irscope.pipelines.base import Pipeline

PIPELINE = Pipeline("tried", "A pipeline with a trial", (), trial="raise SystemExit(0)")
"""


async def test_all_pipelines_are_listed_without_a_trial(
    tmp_path: Path, start_editor: StartEditor, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("missing_one.py", MISSING), ("tried_one.py", TRIED)):
        (tmp_path / name).write_text(text)
    files = ":".join(str(tmp_path / name) for name in ("missing_one.py", "tried_one.py"))
    monkeypatch.setenv("IRSCOPE_PIPELINES", files)
    monkeypatch.setenv("IRSCOPE_STORE", str(tmp_path / "cache" / "runs.db"))
    settings = {"pipeline": "export", "run": OFF, "python": sys.executable}
    editor = await start_editor(playing=True, settings=settings)
    found = await editor.request("irscope/pipelines", uri=editor.open(script))
    assert (found.chosen, found.python) == ("export", sys.executable)
    rows = {one.name: one for one in found.pipelines}
    assert set(rows) == {*pipelines(), "made-up", "tried"}
    assert rows["tried"].status == rows["inductor"].status == "untried"
    assert rows["glow"].status == "unsupported" and rows["glow"].why
    missing = rows["made-up"]
    assert missing.status == "missing" and missing.install.endswith("-m pip install 'no-such-package>=2'")
    one = (await editor.request("irscope/pipelines", uri=script.as_uri(), trials=True, only=["tried"])).pipelines
    assert [(each.name, each.status) for each in one] == [("tried", "available")]


async def test_no_interpreter_is_started_in_a_workspace_that_is_not_trusted(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"trusted": False})
    with pytest.raises(Exception, match="not trusted"):
        await editor.request("irscope/pipelines")
