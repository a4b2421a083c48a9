"""Sessions with the real server, the real driver and, where it says so, the real torch."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsp_editor import SHARED, AtWork, Editor, StartEditor, data_of
from lsprotocol import types
from support import Instant, ends, late, passed_at_this_load

BREAK_AND_RECOMPILE = """\
import torch


@torch.compile
def f(x):
    y = torch.relu(x @ x)
    print("hi")
    return y.sin() + 1


for n in (4, 5, 6):
    f(torch.randn(n, n))
"""


def write(tmp_path: Path, text: str, name: str = "script.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@SHARED
@pytest.mark.worker
async def test_breaks_and_recompilations_on_open(at_work: AtWork, tmp_path: Path) -> None:
    editor = await at_work()
    uri = editor.open(write(tmp_path, BREAK_AND_RECOMPILE))
    await editor.until_ended()
    await editor.until(lambda: len(editor.diagnostics(uri)) == 2)
    by_line = {found.range.start.line: found for found in editor.diagnostics(uri)}
    broken = by_line[6]
    assert broken.code == "GB0059" and data_of(broken)["kind"] == "graph-break"
    assert broken.range == types.Range(types.Position(6, 4), types.Position(6, 15))
    assert broken.code_description and "gb0059" in broken.code_description.href
    assert broken.related_information and broken.related_information[0].location.range.start.line == 11
    recompiled = by_line[4]
    assert data_of(recompiled)["kind"] == "recompilation"
    assert "also recompiled `f, after line 7`." in recompiled.message, "it has the same cause"
    assert 7 in {one.location.range.start.line for one in recompiled.related_information or ()}
    *_, (line, title) = await editor.lenses(uri)
    assert line == 3 and title.startswith("2 graphs · 1 break · 2 recompiles · ") and "kernel" not in title
    assert "`0/1`" in await editor.hover(uri, 4, 4)
    assert "hi\n" in "".join(told.text for told in editor.told["irscope/output"])


@SHARED
@pytest.mark.worker
async def test_down_to_the_kernel_of_a_line(at_work: AtWork, tmp_path: Path) -> None:
    text = BREAK_AND_RECOMPILE.replace("(4, 5, 6)", "(4,)").replace('    print("hi")\n', "")
    editor = await at_work({"run": {"onSave": "off"}})
    uri = editor.open(write(tmp_path, text))
    found = await editor.request("irscope/kernelsAt", uri=uri, line=5, run=True)
    kernels = {kernel.language: kernel for kernel in found.kernels}
    assert set(kernels) == {"cpp", "extern"}
    source = await editor.request("irscope/document", uri=kernels["cpp"].uri)
    assert source.languageId == "cpp" and "#include" in source.text
    caller = await editor.request("irscope/document", uri=kernels["extern"].uri)
    assert "extern_kernels.mm(" in caller.text.split("\n")[kernels["extern"].line]
    so_far = (await editor.request("irscope/stagesOf", uri=uri)).stages
    assert "output-code" in {stage.name for stage in so_far}
    stages = (await editor.request("irscope/stagesOf", uri=uri, run=True)).stages  # when the run has ended
    names = [stage.name for stage in stages if stage.compile == "0/0"]
    assert {"bytecode", "dynamo-graph", "inference-graph", "post-grad-graph", "output-code", "kernel"} <= set(names)
    told: set[str] = set()
    runs_changed = len(editor.told["irscope/runsChanged"])
    for stage in stages:
        content = await editor.client.workspace_text_document_content_async(types.TextDocumentContentParams(stage.uri))
        assert content.text.strip(), stage.uri
        if stage.isGraph:
            graph = await editor.request("irscope/graph", run=stage.run, stage=stage.stage)
            lines = content.text.split("\n")
            calls = [number for number, kind in enumerate(graph.nodes.kind) if kind == 2]
            # Fusion decisions do not name what nothing was to be decided on.
            told_of = [call for call in calls if stage.name != "fusion" or graph.nodes.spans[call]]
            assert calls and all(graph.nodes.name[call] in lines[graph.nodes.line[call]] for call in told_of)
            assert any(graph.files[graph.nodes.file[call]] == uri for call in calls if graph.nodes.file[call] >= 0)
            linked = await editor.request("irscope/graphKernels", run=stage.run, stage=stage.stage)
            told |= {linked.calls[one].name for call in calls for one in linked.nodes[call]}
            assert all(one.place.uri.startswith("irscope:") for one in linked.calls)
    assert {kernel.name for kernel in found.kernels} <= told, "nodes lead to the kernels that they became"
    assert {"ir-pre-fusion", "fusion", "ir-post-fusion"} <= {stage.name for stage in stages if stage.isGraph}
    offered = [stage for stage in stages if not stage.made]
    assert offered and {stage.name for stage in offered} == {"assembly"}
    await editor.until(lambda: len(editor.told["irscope/runsChanged"]) == runs_changed + len(offered))
    made = (await editor.request("irscope/stagesOf", uri=uri)).stages
    assert [stage.stage for stage in made if not stage.made or not stage.bytes] == []
    assembly = await editor.request("irscope/document", uri=offered[0].uri)
    assert assembly.languageId == "asm" and "ret" in assembly.text
    *_, (_, title) = await editor.lenses(uri)
    assert title.startswith("1 graph · 1 kernel · ")


@SHARED
@pytest.mark.worker
async def test_the_unsaved_text_runs(at_work: AtWork, tmp_path: Path) -> None:
    path = write(tmp_path, "import torch\n# torch.compile, one day\n")
    editor = await at_work()
    uri = editor.open(path, BREAK_AND_RECOMPILE)
    await editor.until_ended()
    await editor.until(lambda: "GB0059" in editor.codes(uri))
    assert path.read_text() == "import torch\n# torch.compile, one day\n"


@SHARED
@pytest.mark.worker
async def test_a_break_in_a_module_of_the_user(at_work: AtWork, tmp_path: Path) -> None:
    module = write(tmp_path, "def g(x):\n    é = '😀'; print(x)\n    return x + 1\n", "module.py")
    script = "import torch, module\n\n@torch.compile\ndef f(x):\n    return module.g(x)\n\nf(torch.ones(2))\n"
    editor = await at_work()
    uri = editor.open(write(tmp_path, script))
    await editor.until_ended()
    await editor.until(lambda: editor.codes(module.as_uri()) == ["GB0059"])
    (found,) = editor.diagnostics(module.as_uri())
    assert (found.range.start.character, found.range.end.character) == (14, 22)  # UTF-16 units: the face is two
    assert editor.codes(uri) == []
    module_uri = editor.open(module)
    assert "Graph break" in await editor.hover(module_uri, 1, 16)


@SHARED
@pytest.mark.worker
async def test_scripts_that_fail(at_work: AtWork, tmp_path: Path) -> None:
    """One after the other in one editor: none of them harms the next."""
    editor = await at_work()
    for number, (text, code, line, said) in enumerate(
        (
            ("import torch\n@torch.compile\ndef f(:\n", "syntax-error", 2, "SyntaxError"),
            ("import torch\ntorch.compile(print)\nimport no_such_module\n", "script-error", 2, "no_such_module"),
            ("import torch\ntorch.compile(print)\n\n1 / 0\n", "script-error", 3, "ZeroDivisionError"),
            ("import torch, sys\ntorch.compile\nsys.exit(3)\n", "script-error", 0, "sys.exit(3)"),
            ("import torch, os\ntorch.compile\nos._exit(3)\n", "script-error", 0, "exit code 3"),
            ("import torch, os\ntorch.compile\nos.kill(os.getpid(), 11)\n", "crashed", 2, "SIGSEGV"),
        ),
        1,
    ):
        uri = editor.open(write(tmp_path, text, f"fails_{number}.py"))
        await editor.until_ended(number)
        await editor.until(lambda uri=uri, code=code: editor.codes(uri) == [code])  # type: ignore[misc]
        (found,) = editor.diagnostics(uri)
        assert found.range.start.line == line and said in found.message
    assert editor.client.messages == []


@SHARED
@pytest.mark.worker
async def test_the_budget(at_work: AtWork, tmp_path: Path) -> None:
    text = BREAK_AND_RECOMPILE + "import time\ntime.sleep(600)\n"
    editor = await at_work({"run": {"budgetSeconds": 15}})
    uri = editor.open(write(tmp_path, text))
    await editor.until_ended(seconds=60)
    await editor.until(lambda: "GB0059" in editor.codes(uri))
    assert "Stopped after 15 s" in editor.log


@SHARED
@pytest.mark.worker
async def test_cancel_kills_at_once(at_work: AtWork, tmp_path: Path) -> None:
    text = "import torch, os, time\ntorch.compile\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    editor = await at_work()
    uri = editor.open(write(tmp_path, text))
    await editor.until(lambda: "irscope/output" in editor.told, 60)
    pid = int(editor.told["irscope/output"][0].text)
    begun = Instant()
    assert (await editor.request("irscope/cancel", uri=uri)).cancelled
    await editor.until_ended()
    assert passed_at_this_load(begun) < 1
    assert ends(pid, 1.0)


async def test_an_interpreter_without_torch(start_editor: StartEditor, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    await _refused(start_editor, tmp_path, str(tmp_path / "bare" / "bin" / "python"), "torch")


async def test_an_interpreter_that_is_none(start_editor: StartEditor, tmp_path: Path) -> None:
    await _refused(start_editor, tmp_path, str(tmp_path / "nowhere"), str(tmp_path / "nowhere"))


async def test_a_torch_that_is_too_old(start_editor: StartEditor, tmp_path: Path) -> None:
    bare = tmp_path / "old"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    (packages,) = bare.glob("lib/python3*/site-packages")
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text("__version__ = '2.4.1'\n")
    (packages / "torch" / "version.py").write_text("__version__ = '2.4.1'\n")
    info = packages / "torch-2.4.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.4.1\n")
    await _refused(start_editor, tmp_path, str(bare / "bin" / "python"), "2.4.1")


async def _refused(start_editor: StartEditor, tmp_path: Path, python: str, said: str) -> None:
    """The environment cannot run it: one message box, a finding, a state; a second save says it in the log only."""
    editor = await start_editor(settings={"python": python})
    uri = editor.open(write(tmp_path, BREAK_AND_RECOMPILE))
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["environment-error"])
    assert said in editor.diagnostics(uri)[0].message
    assert [said in shown.message for shown in editor.client.messages] == [True]
    await editor.until(lambda: editor.state == "refused")
    editor.save(uri)
    await editor.until_ended(2)
    await asyncio.sleep(0.1)
    assert len(editor.client.messages) == 1
    result: Any = await editor.request("irscope/run", uri=uri, lane="deep")
    assert result.outcome == "environment-error" and said in result.message


@SHARED
async def test_a_file_that_is_gone(at_work: AtWork, tmp_path: Path) -> None:
    editor = await at_work()
    result = await editor.request("irscope/run", uri=(tmp_path / "gone.py").as_uri(), lane="fast")
    assert result.outcome == "environment-error" and "gone.py" in result.message


async def hovered(editor: Editor, uri: str, line: int, character: int) -> str:
    """A hover that has its guards: on a busy machine reading them takes longer than a hover waits."""
    begun = Instant()
    while "Hover again" in (text := await editor.hover(uri, line, character)):
        assert not late(begun, 10.0)
        await asyncio.sleep(0.05)
    return text


@SHARED
@pytest.mark.worker
async def test_the_guards_on_a_parameter_and_the_cost_of_a_break(at_work: AtWork, tmp_path: Path) -> None:
    text = BREAK_AND_RECOMPILE.replace("def f(x)", "def f(x, n)").replace("x @ x", "x @ x * n").replace("f(t", "f(t", 1)
    text = text.replace("(4, 5, 6)", "(4, 5)").replace("f(torch.randn(n, n))", "f(torch.randn(4, 4), n)")
    editor = await at_work()
    path = write(tmp_path, text)
    uri = editor.open(path)
    await editor.until_ended()
    hover = await hovered(editor, uri, 4, 9)
    assert f"- `n == 4` · [line 6]({uri}#L6) · **failed 1 time** · `0/0`" in hover
    assert "Guards, and the time of one check of them all: `0/0` " in hover and "µs" in hover
    assert "`x` is a `Tensor`: float32, size \\[4, 4\\]" in await hovered(editor, uri, 4, 6)
    broken = await editor.hover(uri, 6, 6)
    assert "It costs 1 extra graph and " in broken or "It costs 2 extra graphs and " in broken
    assert "```python\n  if not torch.compiler.is_compiling():\n      print" in broken
