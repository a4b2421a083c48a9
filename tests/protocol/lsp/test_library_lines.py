"""A library's model under torch.compile: from the user's line to its kernels, to the library's lines, and back."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import FileLines, Kernel, Origin, to_json
from lsp_editor import Editor, StartEditor
from made import compile_of, kernel, stage

Play = Callable[..., Path]

LIBRARY = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.sin()\n"
TRAIN = "import torch, lib\nmodel = torch.compile(lib.Model())\nloss = model(torch.ones(3))\nloss.backward()\n"
CALL, BACKWARD, SINE = 2, 3, 4
"""0-based lines of the script, the last of the library."""
GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3][1]cpu"):
        l_x_ = L_x_

         # File: {file}:5 in forward, code: return x.sin()
        sin: "f32[3][1]cpu" = l_x_.sin();  l_x_ = None
        return (sin,)
"""


@pytest.fixture
def project(tmp_path: Path, play: Play) -> tuple[Path, Path]:
    """A script, and the file of a library whose model it compiles: a kernel forward and one backward."""
    return play_project(tmp_path, play, LIBRARY, GRAPH)


def play_project(tmp_path: Path, play: Play, text: str, graph: str) -> tuple[Path, Path]:
    """As `project`, with a text of the library and a graph of its model."""
    script, library = tmp_path / "train.py", tmp_path / "site-packages" / "lib.py"
    library.parent.mkdir()
    script.write_text(TRAIN)
    library.write_text(text)
    calls = {
        "callers": (Origin(str(script), CALL + 1), Origin(str(script), 2)),
        "backward_callers": (Origin(str(script), BACKWARD + 1), Origin(str(script), 2)),
    }
    model = compile_of(str(library), "0/0", "wrapper", 4, program="Model", **calls)
    stages = [[to_json(stage("0/0", "dynamo-graph")), graph.format(file=library)]]
    for name in ("kernel/k0", "kernel-backward/k1"):
        stages.append([to_json(stage("0/0", name, "cpp")), "void k() {}\n"])
    kernels = [
        _of_library(kernel("k0", "0/0", stage="0/0/kernel/k0"), library),
        _of_library(kernel("k1", "0/0", stage="0/0/kernel-backward/k1"), library),
    ]
    play({"findings": [], "compiles": [[to_json(model), stages]], "kernels": [to_json(one) for one in kernels]})
    return script, library


def _of_library(kernel: Kernel, library: Path) -> Kernel:
    line = Origin(str(library), SINE + 1)
    return dataclasses.replace(kernel, origins=(line,), innermost=line, lines=(FileLines(line.file, (line.line,)),))


async def hover(editor: Editor, uri: str, line: int, wanted: str) -> str:
    """What is said of a line, once the graphs of the run are read."""
    for _ in range(100):
        if wanted in (said := await editor.hover(uri, line, 10)):
            break
        await asyncio.sleep(0.05)
    return said


async def names(editor: Editor, uri: str, line: int, **more: Any) -> list[str]:
    answer = await editor.request("irscope/kernelsAt", uri=uri, line=line, **more)
    return [kernel.name for kernel in answer.kernels]


async def test_lines_of_the_user_and_of_the_library_have_kernels(
    start_editor: StartEditor, project: tuple[Path, Path]
) -> None:
    script, library = project
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    assert await names(editor, uri, CALL, run=True) == ["k0", "k1"], "with the backward of what is called"
    assert await names(editor, uri, BACKWARD) == ["k1"]
    assert await names(editor, uri, 1) == ["k0", "k1"], "the call of torch.compile has both"
    inside = editor.open(library)
    assert await names(editor, inside, SINE) == ["k0", "k1"], "from the same run"
    assert len((await editor.request("irscope/runs")).runs) == 1
    regions = (await editor.request("irscope/regions", uri=inside)).regions
    assert ("kernel", SINE) in [(region.kind, region.line) for region in regions]


async def test_a_dead_end_says_what_was_looked_at(start_editor: StartEditor, project: tuple[Path, Path]) -> None:
    script, _ = project
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    answer = await editor.request("irscope/kernelsAt", uri=editor.open(script), line=0, run=True)
    assert answer.reason == (
        f"No kernel came from line 1. Looked at run {answer.run}: 0/0 Model (2 kernels). Lines with kernels: 2, 3, 4."
    )


async def test_hovers_lead_from_the_call_and_back_to_it(start_editor: StartEditor, project: tuple[Path, Path]) -> None:
    script, library = project
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    await names(editor, uri, CALL, run=True)
    assert await hover(editor, uri, CALL, "Calls") == "Calls `Model`, 2 kernels"
    assert await hover(editor, uri, BACKWARD, "Runs") == "Runs the backward of `Model`, 1 kernel"
    assert await editor.lenses(uri) == [
        (1, "no breaks · next: profile it"),
        (1, "Model · 1 graph · 2 kernels · 500 ms"),
    ]
    inside = editor.open(library)
    link = f"[train.py:{CALL + 1}]({uri}#L{CALL + 1})"
    assert (await hover(editor, inside, SINE, "called")).endswith(f"In `Model`, called from {link}")


async def test_a_line_that_only_looks_at_a_size_names_its_kernel_and_the_call(
    start_editor: StartEditor, play: Play, tmp_path: Path
) -> None:
    text = LIBRARY.replace("        return", "        n = x.shape\n        return")
    script, library = play_project(tmp_path, play, text, GRAPH.replace(":5 in", ":6 in"))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    await names(editor, uri, CALL, run=True)
    inside = editor.open(library)
    said = await hover(editor, inside, SINE, "called")
    assert said.startswith("In 2 kernels: [`k0`](irscope:/")
    assert said.endswith(f"In `Model`, called from [train.py:{CALL + 1}]({uri}#L{CALL + 1})")
