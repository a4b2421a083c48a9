"""A file is profiled from an editor: progress, lenses, hover and marks after it, and a cancel."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from irscope.profiling.changes import stored_profile
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
    f(torch.ones(400, 800))
"""
SETTINGS = {"run": {"onSave": "off"}, "worker": {"enabled": False}}


async def start(folder: Path) -> Editor:
    options = {"storePath": str(folder / "runs.db")}
    return await Editor.start(SERVER, options=options, settings=SETTINGS, folder=folder)


async def test_a_profile_is_on_the_lines_and_there_again_in_the_next_session(tmp_path: Path) -> None:
    script = write(tmp_path, NET)
    editor = await start(tmp_path)
    try:
        uri = editor.open(script)
        done = await editor.request("irscope/profile", uri=uri, calls=2)
        assert done.run and done.message == ""
        titles = [title for _, title in await editor.lenses(uri)]
        assert [title for title in titles if ": kernels " in title], titles
        assert not [title for title in titles if "running" in title] and editor.lens_refreshes > 0, titles
        assert [title for title in titles if "bound" in title and title.count(" of ") == 1], titles
        hover = await editor.hover(uri, 5, 15)
        assert "**Measured**" in hover and "cpp_fused_mul_relu_0" in hover
        regions = (await editor.request("irscope/regions", uri=uri)).regions
        assert [(one.line, one.heat) for one in regions if one.kind == "measured"] == [(5, 1.0)]
        texts = [getattr(report, "message", "") or "" for reports in editor.progress.values() for report in reports]
        assert any("timing program 1 of 1" in text for text in texts), texts
        with Store(str(tmp_path / "runs.db")) as store:
            assert store.profile(done.run)["steps"] == 2
    finally:
        await editor.close()
    editor = await start(tmp_path)
    try:
        titles = [title for _, title in await editor.lenses(editor.open(script))]
        assert any("bound" in title for title in titles), titles
    finally:
        await editor.close()


BREAKS = """\
import torch


@torch.compile
def f(x):
    x = torch.relu(x) * 2
    print("half way")
    return x + 1


with torch.no_grad():
    f(torch.ones(40, 80))
"""


@pytest.mark.nightly  # many processes by turns
async def test_a_profile_against_a_pipeline_and_without_breaks(tmp_path: Path) -> None:
    editor = await start(tmp_path)
    try:
        uri = editor.open(write(tmp_path, BREAKS))
        done = await editor.request("irscope/profile", uri=uri, calls=2, against=["torchscript"], withoutBreaks=True)
        assert done.run and done.message == ""
        with Store(str(tmp_path / "runs.db")) as store:
            profile = stored_profile(store, done.run)
        assert profile is not None
        assert [[one.pipeline for one in region.elsewhere] for region in profile.regions] == [["torchscript"]] * 2
        assert all(one.elsewhere[0].seconds is not None for one in profile.regions), profile.regions
        [cost] = profile.breaks
        assert cost.line == 7 and cost.removed is not None and cost.removed.saved is not None, cost
        assert [one.run for one in editor.told["irscope/runsChanged"] if not one.running] == [done.run]
        texts = [getattr(report, "message", "") or "" for reports in editor.progress.values() for report in reports]
        assert any("torchscript" in text for text in texts), texts
        lenses = [title for _, title in await editor.lenses(uri)]
        assert any("bound" in title for title in lenses), lenses
        with pytest.raises(Exception, match="Unknown pipeline: 'glue'"):
            await editor.request("irscope/profile", uri=uri, against=["glue"])
    finally:
        await editor.close()


async def test_a_profile_that_is_cancelled_ends_its_process(tmp_path: Path) -> None:
    script = write(tmp_path, "import time\nopen('began', 'w').close()\ntime.sleep(600)\n")
    editor = await start(tmp_path)
    try:
        uri = editor.open(script)
        going = asyncio.ensure_future(editor.request("irscope/profile", uri=uri))
        await editor.until(lambda: (tmp_path / "began").exists())
        assert (await editor.request("irscope/cancel", uri=uri)).cancelled
        done = await going
        assert done.run is None and done.message == "The measurement was cancelled."
    finally:
        await editor.close()
