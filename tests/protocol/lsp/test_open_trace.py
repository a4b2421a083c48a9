"""A trace from elsewhere, opened in the editor: a run like any other."""

from __future__ import annotations

from pathlib import Path

from lsp_editor import SERVER, Editor

TRACES = Path(__file__).parents[2] / "plain" / "traces"
SETTINGS = {"run": {"onSave": "off", "onOpen": "off"}, "worker": {"enabled": False}}


async def test_an_opened_trace_is_a_run_with_stages(tmp_path: Path) -> None:
    options = {"storePath": str(tmp_path / "runs.db")}
    editor = await Editor.start(SERVER, options=options, settings=SETTINGS, folder=tmp_path)
    try:
        uri = (TRACES / "trace.log.gz").as_uri()
        done = await editor.request("irscope/openTrace", uri=uri, folder=TRACES.as_uri())
        assert done.run and done.message == ""
        assert [one.run for one in editor.told["irscope/runsChanged"]] == [done.run], "the tree shows it"
        listed = await editor.request("irscope/runs")
        assert [(one.run, Path(one.script).name) for one in listed.runs] == [(done.run, "steps.py")]
        tree = await editor.request("irscope/report", run=done.run)
        titles = [stage.title for stage in tree.compiles[0].stages]
        assert "Dynamo graph" in titles and "Output code" in titles
        stage = tree.compiles[0].stages[titles.index("Dynamo graph")]
        document = await editor.request("irscope/document", uri=stage.uri)
        assert "sin" in document.text
        bad = tmp_path / "notes.txt"
        bad.write_text("nothing")
        refused = await editor.request("irscope/openTrace", uri=bad.as_uri())
        assert refused.run is None and refused.message
    finally:
        await editor.close()
