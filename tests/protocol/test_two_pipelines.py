"""Stages of two pipelines side by side: lines that came from the same line of the user's file belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from irscope.store.store import Store
from lsp_editor import PLAYING_SERVER, Editor
from support import run_forked, write

pytestmark = pytest.mark.worker

SCRIPT = """\
import torch


def scale(x, w):
    y = x @ w
    return torch.relu(y.t()) + 1


fast = torch.compile(scale)
fast(torch.ones(2, 3), torch.ones(3, 4))
"""
EDITED = SCRIPT.replace("import torch\n", "import torch\n\nWIDTH = 4\n", 1)
RELU, RELU_EDITED = 5, 7
"""0-based lines."""


class Ran:
    """A run with one stage of interest."""

    def __init__(self, script: Path, store: Path, pipeline: str, stage: str) -> None:
        self.run = run_forked(script, store, lane="deep", pipeline=pipeline).report.run
        with Store(str(store)) as opened:
            self.rows = opened.stage_text(self.run, stage).split("\n")
        self.uri = f"irscope:/{self.run}/{stage}.py"

    def line(self, text: str) -> int:
        [line] = [at for at, row in enumerate(self.rows) if text in row and not row.lstrip().startswith("#")]
        return line


@dataclass(frozen=True)
class Stored:
    store: Path
    script: Path
    traced: Ran
    exported: Ran


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A run of each pipeline."""
    folder = tmp_path_factory.mktemp("two")
    script, store = write(folder, SCRIPT), folder / "runs.db"
    traced = Ran(script, store, "torchscript", "0/0/torchscript-inlined")
    return Stored(store, script, traced, Ran(script, store, "export", "0/0/exported-program"))


async def test_two_pipelines_side_by_side(stored: Stored) -> None:
    """The second one ran when the script had been edited."""
    traced, folder = stored.traced, stored.script.parent
    script = write(folder, EDITED)
    options, settings = {"storePath": str(stored.store)}, {"run": {"onSave": "off"}}
    editor = await Editor.start(PLAYING_SERVER, options=options, settings=settings, folder=folder)
    try:
        exported = Ran(script, stored.store, "export", "0/0/exported-program")
        source = editor.open(script)
        await marked(editor, source, traced, exported)
        await marked(editor, source, exported, traced)
        among = [traced.uri, exported.uri]
        asked: dict[str, Any] = {"uri": source, "line": RELU_EDITED, "run": traced.run, "among": among}
        found = await editor.request("irscope/counterparts", **asked)
        lines = {one.uri: list(one.lines) for one in found.places}
        for ran in (traced, exported):
            assert ran.line(" relu: ") in lines[ran.uri], "the cursor in the source marks both"
            first, *others = lines[ran.uri]
            assert first == ran.line(" relu: ") and first > min(others), "what computes comes before a view"
    finally:
        write(folder, SCRIPT)
        await editor.close()


async def marked(editor: Editor, source: str, here: Ran, there: Ran) -> None:
    """The cursor on the relu of one marks that of the other, and the line of the source."""
    asked: dict[str, Any] = {"uri": here.uri, "line": here.line(" relu: "), "run": here.run}
    found = await editor.request("irscope/counterparts", **asked, among=[there.uri, source])
    lines = {one.uri: list(one.lines) for one in found.places}
    assert lines[source] == [RELU_EDITED]
    assert there.line(" relu: ") in lines[there.uri] and there.line("aten.matmul") not in lines[there.uri]


async def test_a_line_has_one_colour_in_both(stored: Stored) -> None:
    traced, exported = stored.traced, stored.exported
    options = {"storePath": str(stored.store)}
    editor = await Editor.start(PLAYING_SERVER, options=options, folder=stored.script.parent)
    try:
        numbers = []
        for ran, other in ((traced, exported), (exported, traced)):
            found = await editor.request("irscope/linkedLines", uri=ran.uri, beside=[other.run])
            numbers.append({key.line: key.number for key in found.keys})
        assert numbers[0] == numbers[1] and RELU in numbers[0]
        gone = await editor.request("irscope/linkedLines", uri=traced.uri, beside=["20200101-000000-gone"])
        assert gone.keys, "a run that was deleted changes nothing"
    finally:
        await editor.close()
