"""Pipelines compared on the file of an editor: the request, its progress and end, and what the panel shows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import write

pytestmark = pytest.mark.worker

NET = """\
import torch


@torch.compile
def f(x):
    return torch.relu(x) * 2


with torch.no_grad():
    f(torch.ones(4, 8))
"""
SETTINGS = {
    "run": {"onSave": "off", "onOpen": "off"},
    "worker": {"enabled": False},
}  # a comparison has its own processes


async def start(folder: Path) -> Editor:
    options = {"storePath": str(folder / "runs.db")}
    return await Editor.start(SERVER, options=options, settings=SETTINGS, folder=folder)


async def test_pipelines_are_compared_and_shown_with_links_to_their_stages(tmp_path: Path) -> None:
    script = write(tmp_path, NET)
    editor = await start(tmp_path)
    try:
        uri = editor.open(script)
        names = ["torchscript", "export", "torchscript"]
        done = await editor.request("irscope/compare", uri=uri, pipelines=names)
        assert done.run and done.message == ""
        shown = await editor.request("irscope/comparison", run=done.run)
        assert [one.pipeline for one in shown.pipelines] == ["torchscript", "export"] and shown.reason == ""
        assert done.run == shown.pipelines[-1].run, "the newest one, so that no other run is newer"
        for one in shown.pipelines:
            assert one.operators.value == one.taken.value == 2 and one.call.median > 0 and one.call.rounds > 1
            assert one.kernels.value is None and "does not include its kernels" in one.kernels.why
            assert one.stages and all(stage.compile == "0/0" for stage in one.stages)
            for stage in one.stages:
                document = await editor.request("irscope/document", uri=stage.uri)
                assert "relu" in document.text, stage.title
        assert "Exported program" in [stage.title for stage in shown.pipelines[1].stages]
        told = [one.run for one in editor.told["irscope/runsChanged"] if not one.running]
        assert told == [one.run for one in shown.pipelines], "the tree shows the runs"
        texts = [getattr(report, "message", "") or "" for reports in editor.progress.values() for report in reports]
        assert any("through torchscript" in text for text in texts), texts
        with pytest.raises(Exception, match="Unknown pipeline: 'glue'"):
            await editor.request("irscope/compare", uri=uri, pipelines=["glue"])
    finally:
        await editor.close()


async def test_a_comparison_that_is_cancelled_ends_its_processes_and_keeps_nothing(tmp_path: Path) -> None:
    script = write(tmp_path, "import time\nopen('began', 'w').close()\ntime.sleep(600)\n")
    editor = await start(tmp_path)
    try:
        uri = editor.open(script)
        going = asyncio.ensure_future(editor.request("irscope/compare", uri=uri, pipelines=["torchscript", "export"]))
        await editor.until(lambda: (tmp_path / "began").exists())
        assert (await editor.request("irscope/cancel", uri=uri)).cancelled
        done = await going
        assert done.run is None and done.message == "The comparison was cancelled."
        with Store(str(tmp_path / "runs.db")) as store:
            [run] = store.runs()
            assert run.outcome is not None and run.outcome.kind.value == "cancelled", "and the second never began"
            assert store.comparison(run.run) is None
        shown = await editor.request("irscope/comparison", run=run.run)
        assert list(shown.pipelines) == [] and "Compare Pipelines" in shown.reason
    finally:
        await editor.close()
