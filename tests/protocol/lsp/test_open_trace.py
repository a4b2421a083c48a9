"""A trace from elsewhere, opened in the editor: a run like any other."""

from __future__ import annotations

import json
import zipfile
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


async def test_an_opened_artifact_is_a_text_with_the_lines_that_it_does_not_fit(tmp_path: Path) -> None:
    code = tmp_path / "model.py"
    code.write_text("def f(x):\n    return x + 1\n")
    program = {
        "graph_module": {
            "graph": {
                "tensor_values": {},
                "nodes": [{"metadata": {"stack_trace": f'  File "{code}", line 2, in f\n    return x + 2\n'}}],
            },
            "signature": {"input_specs": []},
        },
        "range_constraints": {},
    }
    artifact = tmp_path / "model.pt2"
    with zipfile.ZipFile(artifact, "w") as archive:
        archive.writestr("m/models/model.json", json.dumps(program))
    editor = await Editor.start(
        SERVER, options={"storePath": str(tmp_path / "runs.db")}, settings=SETTINGS, folder=tmp_path
    )
    try:
        done = await editor.request("irscope/openTrace", uri=artifact.as_uri())
        assert done.run is None and done.message == ""
        assert done.text.startswith("model.pt2: program of torch.export")
        assert [(one.what, one.file, one.line) for one in done.places] == [
            ("`return x + 2` in `f` has changed since it was made.", str(code), 1)
        ]
    finally:
        await editor.close()
